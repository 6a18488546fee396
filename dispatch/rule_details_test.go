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

// The details of an error are payloads: what is here is of R28, and of the way that failures go.

type refusal struct{ Card string }

// refusing registers what fails with a secret in every way there is: the way is the input of the orchestration "refused", which fails with it in turn.
// The tokens of what waits for somebody else come out of the channel.
func refusing(r *perdure.Registry) (tokens chan string) {
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
			_, err = perdure.CallActivityByName[string](ctx, "refuse", way, perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Minute})).Await(ctx)
		}
		seen, why := perdure.ErrorDetails[refusal](err)
		if why != nil || seen.Card != secret {
			return "", fmt.Errorf("%w: %+v, %w", err, seen, why)
		}
		return "", perdure.WithErrorDetails(err, refusal{seen.Card})
	})
	return tokens
}

// wantRefused fails unless an error has the secret as its details.
func wantRefused(t *testing.T, err error) {
	t.Helper()
	if got, why := perdure.ErrorDetails[refusal](err); why != nil || got.Card != secret {
		t.Errorf("the details of %v are %+v, %v", err, got, why)
	}
}

// TestR28DetailsOfErrorsAreSealed: the caller has what the failure was given, whichever way it goes, and none of it is stored, sent or logged in the clear.
func TestR28DetailsOfErrorsAreSealed(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"activity", "inline", "child", "token", "update"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := registry()
			tokens := refusing(r)
			codec := &turning{id: "turned"}
			var logged lockedBuffer
			inBubble(t, simhub.Options{
				Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider, client.WithCodec(codec))
				_ = must(c.Start(ctx, "refused", way, client.WithInstanceID("i-1")))
				h.serveFor(10 * time.Second)
				switch way {
				case "token":
					for range 2 { // attempts
						if err := c.FailActivity(ctx, <-tokens, perdure.WithErrorDetails(errors.New("no"), refusal{secret})); err != nil {
							t.Fatal(err)
						}
						h.serveFor(2 * time.Minute)
					}
				case "update":
					go func() {
						_, err := c.Update(ctx, "i-1", "change", 1)
						wantRefused(t, err)
						_, err = client.New(h.Provider).Update(ctx, "i-1", "change", 1)
						if why := errorOf(perdure.ErrorDetails[refusal](err)); !strings.Contains(fmt.Sprint(why), `codec "turned"`) {
							t.Errorf("without the codec there is %v", why)
						}
						_ = c.RaiseEvent(ctx, "i-1", "over", "")
					}()
				case "activity":
					if p := must(c.Pending(ctx, "i-1", "", 0)); len(p.Items) != 1 || p.Items[0].LastError == nil || string(p.Items[0].LastError.Details) != `{"Card":"4111-1111"}` {
						t.Errorf("pending is %+v", p.Items)
					}
				}
				h.serveFor(time.Hour)

				s := must(c.Status(ctx, "i-1"))
				if way != "update" {
					wantRefused(t, errorOf(client.Result[string](s)))
					blind := errorOf(client.Result[string](must(client.New(h.Provider).Status(ctx, "i-1"))))
					if why := errorOf(perdure.ErrorDetails[refusal](blind)); !strings.Contains(fmt.Sprint(why), `codec "turned"`) {
						t.Errorf("without the codec there is %v", why)
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
					t.Error("history shows no details to who has the codec")
				}
				for _, call := range h.made() {
					if in := string(must(json.Marshal(call.Input))); strings.Contains(in, secret) {
						t.Errorf("%s has the secret: %s", call.Operation, in)
					}
				}
				if strings.Contains(logged.String(), secret) {
					t.Error("the log has the secret")
				}
				h.checkRest()
			})
		})
	}
}

func errorOf[T any](_ T, err error) error { return err }

// lockedBuffer is a buffer that many write to.
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

// TestR28DetailsThatAClientLeavesPlainAreSealed: those that the holder of a token sends without the codec, before they come into history or the record of an attempt.
func TestR28DetailsThatAClientLeavesPlainAreSealed(t *testing.T) {
	t.Parallel()
	r := registry()
	tokens := refusing(r)
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
		plain := client.New(h.Provider)
		_ = must(plain.Start(ctx, "refused", "token", client.WithInstanceID("i-1")))
		h.serveFor(time.Second)
		for range 2 {
			if err := plain.FailActivity(ctx, <-tokens, perdure.WithErrorDetails(errors.New("no"), refusal{secret})); err != nil {
				t.Fatal(err)
			}
			h.serveFor(2 * time.Minute)
		}
		wantRefused(t, errorOf(client.Result[string](must(client.New(h.Provider, client.WithCodec(codec)).Status(ctx, "i-1")))))
		for _, call := range h.made() {
			in := string(must(json.Marshal(call.Input)))
			if strings.Contains(in, secret) && strings.HasPrefix(call.Operation, "DynamoDB") {
				t.Errorf("%s has the secret: %s", call.Operation, in)
			}
		}
	})
}

// TestR28DetailsAreReadWithTheirCodec: code that gets sealed details in a build without the codec is blocked, and goes on in one that has it. Details that a
// codec will not encode, for good, are left out, and nothing is blocked or lost with them; an outage of the codec has them come later.
func TestR28DetailsAreReadWithTheirCodec(t *testing.T) {
	t.Parallel()
	r := registry()
	tokens := refusing(r)
	perdure.AddOrchestration(r, "told", func(ctx *perdure.OrchestrationContext, way string) (string, error) {
		_, err := perdure.CallActivityByName[string](ctx, "refuse", way).Await(ctx)
		seen, why := perdure.ErrorDetails[refusal](err)
		return fmt.Sprintf("%s, %v", seen.Card, why), nil
	})
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "told", "token", client.WithInstanceID("i-1")))
		h.serveFor(time.Second)
		h.deployWith(r, "without", nil)
		if err := c.FailActivity(ctx, <-tokens, perdure.WithErrorDetails(errors.New("no"), refusal{secret})); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		if s := must(c.Status(ctx, "i-1")); s.Status != client.StatusBlocked || s.Failure.Type != history.TypePayloadUnreadable {
			t.Errorf("%s, %+v", s.Status, s.Failure)
		}
		h.deployWith(r, "with", []perdure.Codec{codec})
		for range 4 {
			_ = must(h.Timekeeper.Sweep(ctx))
			h.serveFor(10 * time.Minute)
		}
		if got := must(client.Result[string](must(c.Status(ctx, "i-1")))); got != secret+", <nil>" {
			t.Errorf("%q", got)
		}
	})
	for name, c := range map[string]struct {
		fails error
		want  string
	}{
		"for good":   {perdure.NonRetryable(errors.New("not this")), ", perdure: error details are not available: instance \"i-1\": error details of \"refuse\", codec \"choosy\": not this"},
		"for a time": {errors.New("throttled"), secret + ", <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec := &choosy{turning: turning{id: "choosy"}}
			codec.fail(c.fails)
			inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
				cl := client.New(h.Provider, client.WithCodec(codec))
				_ = must(cl.Start(ctx, "told", "activity", client.WithInstanceID("i-1")))
				h.serveFor(20 * time.Minute)
				codec.fail(nil)
				h.serveFor(time.Hour)
				if got := must(client.Result[string](must(cl.Status(ctx, "i-1")))); got != c.want {
					t.Errorf("the code sees %q, want %q", got, c.want)
				}
				h.checkRest()
			})
		})
	}
}

// choosy is a codec that fails with details of errors alone.
type choosy struct{ turning }

func (c *choosy) Encode(ctx context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if p.Kind != perdure.PayloadErrorDetails {
		return nil, nil
	}
	return c.turning.Encode(ctx, p, doc)
}

// Details of a worker in another language are taken as they are, within the limit; larger ones are left out, of a cause as well, and the failure comes.
func TestDetailsOfAForeignWorkerHaveTheSameLimit(t *testing.T) {
	t.Parallel()
	large := history.Payload(`"` + strings.Repeat("x", 100<<10) + `"`)
	omitted := "102402 bytes of JSON exceed the limit of 4096"
	for name, c := range map[string]struct{ sent, want history.Failure }{
		"small":      {history.Failure{Details: history.Payload(`{"N":1}`)}, history.Failure{Details: history.Payload(`{"N":1}`)}},
		"large":      {history.Failure{Details: large, Cause: &history.Failure{Details: large}}, history.Failure{DetailsOmitted: omitted, Cause: &history.Failure{DetailsOmitted: omitted}}},
		"of a cause": {history.Failure{Cause: &history.Failure{Details: large}}, history.Failure{Cause: &history.Failure{DetailsOmitted: omitted}}},
		"elsewhere":  {history.Failure{Details: history.Payload(`{"ref":"history:x","sha256":"y","bytes":1}`)}, history.Failure{DetailsOmitted: "stored where no program can read them"}},
		"in a store": {history.Failure{Details: history.Payload(`{"ref":"object:x/1/y/z","sha256":"y","bytes":1}`)}, history.Failure{DetailsOmitted: "stored where no program can read them"}},
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
					Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: it.Segment,
					Outcomes: []provider.ActivityOutcome{{ActivityID: it.ActivityID, Attempt: 1, Error: &c.sent}},
				})
				if err != nil {
					t.Fatal(err)
				}
				h.turn(0)
				f := must(h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)).Error.Cause
				if got, want := string(must(json.Marshal(f))), string(must(json.Marshal(c.want))); got != want {
					t.Errorf("history has %s, want %s", got, want)
				}
			})
		})
	}
}
