package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The details of an error are payloads (R28).

type refusal struct{ Card string }

// registerRefusals registers activities and orchestrations that fail with a secret in the details. The input of
// "refused" selects the source of the failure: an activity, an inline activity, a child, a token or an update. The
// channel receives the completion tokens.
func registerRefusals(r *perdure.Registry) (tokens chan string) {
	tokens = make(chan string, 10)
	refuse := func(ctx context.Context, way string) (string, error) {
		if way == "token" {
			tokens <- perdure.ActivityInfoFrom(ctx).CompletionToken
			return "", perdure.ErrPending
		}
		return "", fmt.Errorf("refused: %w", perdure.WithErrorDetails(errors.New("no"), refusal{secret}))
	}
	perdure.AddActivity(r, "refuse", refuse)
	perdure.AddActivity(r, "refuse-inline", refuse, perdure.Inline())
	perdure.AddOrchestration(r, "refused", func(ctx *perdure.OrchestrationContext, way string) (string, error) {
		var err error
		switch way {
		case "child":
			_, err = perdure.CallSubOrchestrationByName[string](ctx, "refused", "activity").Await(ctx)
		case "inline":
			_, err = perdure.CallActivityByName[string](ctx, "refuse-inline", way).Await(ctx)
		case "update":
			if err := perdure.SetUpdateHandler(ctx, "change", func(*perdure.OrchestrationContext, int) (int, error) {
				return 0, perdure.WithErrorDetails(errors.New("no"), refusal{secret})
			}); err != nil {
				return "", err
			}
			_, err = perdure.WaitForExternalEvent[string](ctx, "over").Await(ctx)
			return "", err
		default:
			retry := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Minute})
			_, err = perdure.CallActivityByName[string](ctx, "refuse", way, retry).Await(ctx)
		}
		seen, why := perdure.ErrorDetails[refusal](err)
		if why != nil || seen.Card != secret {
			return "", fmt.Errorf("%w: %+v, %w", err, seen, why)
		}
		return "", perdure.WithErrorDetails(err, refusal{seen.Card})
	})
	return tokens
}

// wantErrorDetails fails the test unless the details of err contain the secret.
func wantErrorDetails(t *testing.T, err error) {
	t.Helper()
	if got, why := perdure.ErrorDetails[refusal](err); why != nil || got.Card != secret {
		t.Errorf("got details %+v of %v, %v, want the secret", got, err, why)
	}
}

// The caller receives the details from each source. The details are never stored, sent or logged as plain text.
func TestR28_errorDetails_areEncoded(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"activity", "inline", "child", "token", "update"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := registry()
			tokens := registerRefusals(r)
			codec := &turning{id: "turned"}
			var logged lockedBuffer
			inBubble(t, simhub.Options{
				Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1,
				Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider, client.WithCodec(codec))
				_ = must(c.Start(ctx, "refused", way, client.WithInstanceID("i-1")))
				h.serveFor(10 * time.Second)
				switch way {
				case "token":
					for range 2 { // attempts
						err := c.FailActivity(ctx, <-tokens,
							perdure.WithErrorDetails(errors.New("no"), refusal{secret}))
						if err != nil {
							t.Fatal(err)
						}
						h.serveFor(2 * time.Minute)
					}
				case "update":
					go func() {
						_, err := c.Update(ctx, "i-1", "change", 1)
						wantErrorDetails(t, err)
						_, err = client.New(h.Provider).Update(ctx, "i-1", "change", 1)
						why := errorOf(perdure.ErrorDetails[refusal](err))
						if !strings.Contains(fmt.Sprint(why), `codec "turned"`) {
							t.Errorf("without the codec: got error %v, want one about the codec", why)
						}
						_ = c.RaiseEvent(ctx, "i-1", "over", "")
					}()
				case "activity":
					p := must(c.Pending(ctx, "i-1", "", 0))
					if len(p.Items) != 1 || p.Items[0].LastError == nil ||
						string(p.Items[0].LastError.Details) != `{"Card":"4111-1111"}` {
						t.Errorf("got pending activities %+v, want one with the details", p.Items)
					}
				}
				h.serveFor(time.Hour)

				s := must(c.Status(ctx, "i-1"))
				if way != "update" {
					wantErrorDetails(t, errorOf(client.Result[string](s)))
					blind := errorOf(client.Result[string](must(client.New(h.Provider).Status(ctx, "i-1"))))
					why := errorOf(perdure.ErrorDetails[refusal](blind))
					if !strings.Contains(fmt.Sprint(why), `codec "turned"`) {
						t.Errorf("without the codec: got error %v, want one about the codec", why)
					}
				}
				shown := 0
				for e, err := range c.History(ctx, "i-1") {
					if err != nil {
						t.Fatal(err)
					}
					shown += strings.Count(string(must(json.Marshal(e))), secret)
				}
				if shown == 0 {
					t.Error("the history lacks the details for a client with the codec")
				}
				for _, call := range h.made() {
					if in := string(must(json.Marshal(call.Input))); strings.Contains(in, secret) {
						t.Errorf("%s contains the secret: %s", call.Operation, in)
					}
				}
				if strings.Contains(logged.String(), secret) {
					t.Error("the log contains the secret")
				}
				h.checkIdle()
			})
		})
	}
}

// errorOf returns the error of a call with two results.
func errorOf[T any](_ T, err error) error { return err }

// lockedBuffer is a buffer for concurrent writers.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A client without the codec sends details of an error as plain text. The session encodes them before it stores them in
// history or in an activity record.
func TestR28_errorDetailsOfAPlainClient_areEncoded(t *testing.T) {
	t.Parallel()
	r := registry()
	tokens := registerRefusals(r)
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
		plain := client.New(h.Provider)
		_ = must(plain.Start(ctx, "refused", "token", client.WithInstanceID("i-1")))
		h.serveFor(time.Second)
		for range 2 {
			err := plain.FailActivity(ctx, <-tokens, perdure.WithErrorDetails(errors.New("no"), refusal{secret}))
			if err != nil {
				t.Fatal(err)
			}
			h.serveFor(2 * time.Minute)
		}
		reader := client.New(h.Provider, client.WithCodec(codec))
		wantErrorDetails(t, errorOf(client.Result[string](must(reader.Status(ctx, "i-1")))))
		for _, call := range h.made() {
			in := string(must(json.Marshal(call.Input)))
			if strings.Contains(in, secret) && strings.HasPrefix(call.Operation, "DynamoDB") {
				t.Errorf("%s contains the secret: %s", call.Operation, in)
			}
		}
	})
}

// Encoded details block an instance in a build without the codec, until a build has the codec. If a codec rejects
// details permanently, they are omitted, and the failure arrives without them. If the codec fails temporarily, they
// arrive later.
func TestR28_errorDetailsWithoutTheirCodec_blockTheInstance(t *testing.T) {
	t.Parallel()
	r := registry()
	tokens := registerRefusals(r)
	perdure.AddOrchestration(r, "note", func(ctx *perdure.OrchestrationContext, way string) (string, error) {
		_, err := perdure.CallActivityByName[string](ctx, "refuse", way).Await(ctx)
		seen, why := perdure.ErrorDetails[refusal](err)
		return fmt.Sprintf("%s, %v", seen.Card, why), nil
	})
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1},
		func(ctx context.Context, h *hub) {
			c := client.New(h.Provider, client.WithCodec(codec))
			_ = must(c.Start(ctx, "note", "token", client.WithInstanceID("i-1")))
			h.serveFor(time.Second)
			h.deployWith(r, "without", nil)
			err := c.FailActivity(ctx, <-tokens, perdure.WithErrorDetails(errors.New("no"), refusal{secret}))
			if err != nil {
				t.Fatal(err)
			}
			h.serveFor(time.Hour)
			if s := must(c.Status(ctx, "i-1")); s.Status != client.StatusBlocked ||
				s.Failure.Type != history.TypePayloadUnreadable {
				t.Errorf("got status %s, failure %+v, want blocked with an unreadable payload", s.Status, s.Failure)
			}
			h.deployWith(r, "with", []perdure.Codec{codec})
			for range 4 {
				_ = must(h.Renewer.Sweep(ctx))
				h.serveFor(10 * time.Minute)
			}
			if got := must(client.Result[string](must(c.Status(ctx, "i-1")))); got != secret+", <nil>" {
				t.Errorf("got result %q, want the details", got)
			}
		})
	for name, c := range map[string]struct {
		fails error
		want  string
	}{
		"permanent failure": {
			perdure.NonRetryable(errors.New("not this")),
			`, perdure: error details are not available: instance "i-1": error details of "refuse", codec "choosy": not this`,
		},
		"temporary failure": {errors.New("throttled"), secret + ", <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec := &detailsCodec{turning: turning{id: "choosy"}}
			codec.fail(c.fails)
			inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
				cl := client.New(h.Provider, client.WithCodec(codec))
				_ = must(cl.Start(ctx, "note", "activity", client.WithInstanceID("i-1")))
				h.serveFor(20 * time.Minute)
				codec.fail(nil)
				h.serveFor(time.Hour)
				if got := must(client.Result[string](must(cl.Status(ctx, "i-1")))); got != c.want {
					t.Errorf("got result %q, want %q", got, c.want)
				}
				h.checkIdle()
			})
		})
	}
}

// detailsCodec is a codec that encodes only details of errors.
type detailsCodec struct{ turning }

func (c *detailsCodec) Encode(ctx context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if p.Kind != perdure.PayloadErrorDetails {
		return nil, nil
	}
	return c.turning.Encode(ctx, p, doc)
}

// Details of a worker in another language are accepted within the limit. Larger details, including details of a cause,
// are omitted, and the failure arrives.
func TestErrorDetails_ofAnotherLanguage_haveTheSameLimit(t *testing.T) {
	t.Parallel()
	large := history.Payload(`"` + strings.Repeat("x", 100<<10) + `"`)
	omitted := "102402 bytes of JSON exceed the limit of 4096"
	for name, c := range map[string]struct{ sent, want history.Failure }{
		"small": {
			history.Failure{Details: history.Payload(`{"N":1}`)}, history.Failure{Details: history.Payload(`{"N":1}`)},
		},
		"large": {
			history.Failure{Details: large, Cause: &history.Failure{Details: large}},
			history.Failure{DetailsOmitted: omitted, Cause: &history.Failure{DetailsOmitted: omitted}},
		},
		"large in a cause": {
			history.Failure{Cause: &history.Failure{Details: large}},
			history.Failure{Cause: &history.Failure{DetailsOmitted: omitted}},
		},
		"reference to a history": {
			history.Failure{Details: history.Payload(`{"ref":"history:x","sha256":"y","bytes":1}`)},
			history.Failure{DetailsOmitted: "stored outside the failure"},
		},
		"reference to an object": {
			history.Failure{Details: history.Payload(`{"ref":"object:x/1/y/z","sha256":"y","bytes":1}`)},
			history.Failure{DetailsOmitted: "stored outside the failure"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := perdure.NewRegistry()
			perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				return perdure.CallActivityByName[int](ctx, "elsewhere", 1).Await(ctx)
			})
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				in := h.start("o", 1)
				h.turn(0)
				it := h.workItems()[0]
				err := h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
					Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
					Segment:  it.Segment,
					Outcomes: []provider.ActivityOutcome{{ActivityID: it.ActivityID, Attempt: 1, Error: &c.sent}},
				})
				if err != nil {
					t.Fatal(err)
				}
				h.turn(0)
				f := must(h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)).Error.Cause
				if got, want := string(must(json.Marshal(f))), string(must(json.Marshal(c.want))); got != want {
					t.Errorf("got failure %s in history, want %s", got, want)
				}
			})
		})
	}
}
