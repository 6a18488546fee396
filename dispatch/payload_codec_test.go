package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
)

// turning is a codec that inverts every byte and adds a number, so that no two encodings are equal.
type turning struct {
	id string
	n  atomic.Int64

	mu      sync.Mutex
	decoded []perdure.PayloadInfo
	fails   error
}

func (c *turning) ID() string { return c.id }

func (c *turning) Encode(_ context.Context, _ perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if err := c.failing(); err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%08d", c.n.Add(1)), turned(doc)...), nil
}

func (c *turning) Decode(_ context.Context, p perdure.PayloadInfo, data []byte) ([]byte, error) {
	if err := c.failing(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decoded = append(c.decoded, p)
	return turned(data[8:]), nil
}

// fail makes every call fail, until it is called with nil.
func (c *turning) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = err
}

func (c *turning) failing() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fails
}

// decodedCount returns the number of decoded payloads of a kind, and resets the record.
func (c *turning) decodedCount(kind perdure.PayloadKind) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.decoded {
		if p.Kind == kind {
			n++
		}
	}
	c.decoded = nil
	return n
}

func turned(b []byte) []byte {
	b = bytes.Clone(b)
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

const secret = "4111-1111"

// addSecretive adds orchestrations that send and receive a secret in all possible ways.
func addSecretive(r *perdure.Registry) {
	perdure.AddActivity(r, "secret", func(ctx context.Context, s string) (string, error) {
		perdure.Heartbeat(ctx, s)
		if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
			return "", errors.New("again")
		}
		left, _ := perdure.HeartbeatDetails[string](ctx)
		return s + left, nil
	})
	perdure.AddActivity(r, "inline", func(_ context.Context, s string) (string, error) { return s, nil })
	perdure.AddOrchestration(r, "child", func(ctx *perdure.OrchestrationContext, s string) (string, error) {
		v, err := perdure.WaitForExternalEvent[string](ctx, "note").Await(ctx)
		return s + v, err
	})
	perdure.AddOrchestration(r, "detached", func(ctx *perdure.OrchestrationContext, s string) (string, error) {
		return s, nil
	})
	perdure.AddOrchestration(r, "secretive", func(ctx *perdure.OrchestrationContext, in []string) (string, error) {
		if len(in) == 1 {
			return perdure.ContinueAsNew[string](ctx, append(in, in[0]))
		}
		ctx.SetCustomStatus(in[0])
		noted := perdure.SideEffect(ctx, func() string { return in[1] })
		child := perdure.CallSubOrchestrationByName[string](ctx, "child", noted, perdure.WithInstanceID("child-1"))
		if _, err := perdure.StartOrchestration(ctx, "detached", noted,
			perdure.WithInstanceID("detached-1")); err != nil {
			return "", err
		}
		if _, err := perdure.RaiseEvent(ctx, "child-1", "note", noted).Await(ctx); err != nil {
			return "", err
		}
		received, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
		if err != nil {
			return "", err
		}
		a, err := perdure.CallActivityByName[string](ctx, "secret", received,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Second})).Await(ctx)
		if err != nil {
			return "", err
		}
		c, err := child.Await(ctx)
		if err != nil {
			return "", err
		}
		d, err := perdure.CallActivityByName[string](ctx, "inline", received, perdure.Inline()).Await(ctx)
		return a + c + d, err
	})
}

// TestR28_codec_storesNoPlainPayloads checks that with a codec, no call of a function or the client contains a plain
// document.
func TestR28_codec_storesNoPlainPayloads(t *testing.T) {
	t.Parallel()
	r := registry()
	addSecretive(r)
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{
		Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1, CancelPollInterval: time.Millisecond,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "secretive", []string{secret}, client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		if s := must(c.Status(ctx, "i-1")); string(s.CustomStatus) != fmt.Sprintf("%q", secret) {
			t.Errorf("got custom status %s, encoded %+v", s.CustomStatus, s.EncodedCustomStatus)
		}
		if err := c.RaiseEvent(ctx, "i-1", "go", secret); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)

		s := must(c.Status(ctx, "i-1"))
		if got, err := client.Result[string](s); err != nil || strings.Count(got, secret) != 5 {
			t.Errorf("got %q, error %v, status %s", got, err, s.Status)
		}
		blind := must(client.New(h.Provider).Status(ctx, "i-1"))
		if _, err := client.Result[string](blind); !errors.Is(err, perdure.ErrUnknownCodec) ||
			blind.EncodedOutput == nil || blind.EncodedCustomStatus.Codec != "turned" {
			t.Errorf("got %+v, error %v, want an encoded output and ErrUnknownCodec", blind, err)
		}
		for _, call := range h.made() {
			if in := string(must(json.Marshal(call.Input))); strings.Contains(in, secret) {
				t.Errorf("%s contains the secret: %s", call.Operation, in)
			}
		}
		h.checkIdle()
	})
}

// TestR28_plainDataFromClient_isEncodedInHistory checks that data from a client without the codec is encoded before it
// is stored in history.
func TestR28_plainDataFromClient_isEncodedInHistory(t *testing.T) {
	t.Parallel()
	r := registry()
	addSecretive(r)
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "child", "", client.WithInstanceID("i-1")))
		if err := c.RaiseEvent(ctx, "i-1", "note", secret); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		in := must(h.Provider.ReadInstance(ctx, "i-1"))
		if i := slices.IndexFunc(h.events(in), func(e history.Event) bool {
			return strings.Contains(string(must(json.Marshal(e))), secret)
		}); i >= 0 {
			t.Errorf("event %d contains the secret", i+1)
		}
		if got := must(client.Result[string](must(client.New(h.Provider, client.WithCodec(codec)).Status(ctx,
			"i-1")))); got != secret {
			t.Errorf("got %q, want the secret", got)
		}
	})
}

// TestR28_codecChanges_oldPayloadsStayReadable checks that an instance continues with a new codec or none, if the old
// codec is configured for decoding.
func TestR28_codecChanges_oldPayloadsStayReadable(t *testing.T) {
	t.Parallel()
	r := registry()
	addSecretive(r)
	before := &turning{id: "before"}
	for name, after := range map[string][]perdure.Codec{
		"another": {&turning{id: "after"}, before},
		"none":    {nil, before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{
				Registry: r, Codecs: []perdure.Codec{before},
			}, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider, client.WithCodec(after[0], after[1:]...))
				_ = must(c.Start(ctx, "child", secret, client.WithInstanceID("i-1")))
				h.serveFor(time.Minute)
				h.deployWith(r, "later", after)
				if err := c.RaiseEvent(ctx, "i-1", "note", "!"); err != nil {
					t.Fatal(err)
				}
				h.serveFor(time.Hour)
				if got, err := client.Result[string](must(c.Status(ctx, "i-1"))); err != nil || got != secret+"!" {
					t.Errorf("got %q, error %v", got, err)
				}
			})
		})
	}
}

// deployWith replaces the orchestrators with one of another build and other codecs.
func (h *hub) deployWith(r *perdure.Registry, build string, codecs []perdure.Codec) {
	h.t.Helper()
	time.Sleep(time.Second)
	for _, o := range h.Orchestrators {
		o.Close()
	}
	o := must(dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{
		BuildID: build, Codecs: codecs, CacheBytes: -1,
	}))
	if err := o.ReportBuild(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.Orchestrators = []*dispatch.Orchestrator{o}
}

// TestR28_buildWithoutCodec_blocksInstance checks that the code never receives a payload that it cannot read. The
// instance continues in a build with the codec.
func TestR28_buildWithoutCodec_blocksInstance(t *testing.T) {
	t.Parallel()
	r := registry()
	addSecretive(r)
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "child", secret, client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		h.deployWith(r, "without", nil)
		if err := c.RaiseEvent(ctx, "i-1", "note", "!"); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		s := must(c.Status(ctx, "i-1"))
		if s.Status != client.StatusBlocked || s.Failure.Type != history.TypePayloadUnreadable ||
			!strings.Contains(s.Failure.Message, `codec "turned"`) {
			t.Fatalf("got status %s, failure %+v, want Blocked with the codec's ID", s.Status, s.Failure)
		}

		h.deployWith(r, "with", []perdure.Codec{codec})
		for range 4 {
			_ = must(h.Renewer.Sweep(ctx))
			h.serveFor(10 * time.Minute)
		}
		if got, err := client.Result[string](must(c.Status(ctx, "i-1"))); err != nil || got != secret+"!" {
			t.Errorf("got %q, error %v", got, err)
		}
	})
}

// TestR28_codecOutage_blocksNothing checks that turns and activities are retried while a codec is unavailable.
func TestR28_codecOutage_blocksNothing(t *testing.T) {
	t.Parallel()
	r := registry()
	addSecretive(r)
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{
		Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "secretive", []string{secret, secret}, client.WithInstanceID("i-1")))
		if err := c.RaiseEvent(ctx, "i-1", "go", secret); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			codec.fail(errors.New("throttled"))
			h.serveFor(10 * time.Minute)
			if s := must(client.New(h.Provider).Status(ctx, "i-1")); s.Status == client.StatusBlocked ||
				s.Status.Terminal() {
				t.Fatalf("got status %s during the outage, failure %+v", s.Status, s.Failure)
			}
			codec.fail(nil)
			h.serveFor(2 * time.Second)
		}
		h.serveFor(2 * time.Hour)
		if got, err := client.Result[string](must(c.Status(ctx, "i-1"))); err != nil ||
			strings.Count(got, secret) != 5 {
			t.Errorf("got %q, error %v", got, err)
		}
		h.checkIdle()
	})
}

// TestR28_inputChanges_isDetectedWithoutShowingIt checks that a replay in the same build detects another input
// regardless of the encoding, and that the diagnosis does not show the input.
func TestR28_inputChanges_isDetectedWithoutShowingIt(t *testing.T) {
	t.Parallel()
	codec := &turning{id: "turned"}
	for name, changes := range map[string]bool{"as before": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var now atomic.Bool
			r := registry()
			perdure.AddOrchestration(r, "changing", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				input := secret
				if now.Load() {
					input = "5555-5555"
				}
				first := perdure.CallActivityByName[string](ctx, "unknown", input)
				_, _ = perdure.WaitForExternalEvent[string](ctx, "note").Await(ctx)
				first.Cancel("enough")
				return "done", nil
			})
			inBubble(t, simhub.Options{
				Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1,
			}, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider, client.WithCodec(codec))
				_ = must(c.Start(ctx, "changing", 0, client.WithInstanceID("i-1")))
				h.serveFor(time.Minute)
				now.Store(changes)
				if err := c.RaiseEvent(ctx, "i-1", "note", "!"); err != nil {
					t.Fatal(err)
				}
				h.serveFor(time.Hour)
				s := must(c.Status(ctx, "i-1"))
				if !changes {
					if s.Status != client.StatusCompleted {
						t.Errorf("got status %s, failure %+v, want Completed", s.Status, s.Failure)
					}
					return
				}
				if s.Status != client.StatusBlocked || s.Failure.Type != history.TypeNondeterminism {
					t.Fatalf("got status %s, failure %+v, want Blocked as nondeterministic", s.Status, s.Failure)
				}
				if diagnosis := string(must(json.Marshal(s.Failure))); strings.Contains(diagnosis, "4111") ||
					strings.Contains(diagnosis, "5555") {
					t.Errorf("the diagnosis shows an encoded payload: %s", diagnosis)
				}
			})
		})
	}
}

// TestR28_replay_decodesOnlyAwaitedResults checks that results that the code does not await are not decoded, even by
// many replays.
func TestR28_replay_decodesOnlyAwaitedResults(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "picky", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[int]
		for i := range n {
			fs = append(fs, perdure.CallActivity(ctx, inc, i))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return 0, err
		}
		v, _ := fs[2].Await(ctx)
		_, err := perdure.WaitForExternalEvent[string](ctx, "note").Await(ctx)
		return v, err
	})
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{
		Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "picky", 20, client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		codec.decodedCount("")
		if err := c.RaiseEvent(ctx, "i-1", "note", "!"); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		if n := codec.decodedCount(perdure.PayloadActivityResult); n != 1 {
			t.Errorf("replay decoded %d results, want 1", n)
		}
		if got, err := client.Result[int](must(c.Status(ctx, "i-1"))); err != nil || got != 3 {
			t.Errorf("got %d, error %v, want 3", got, err)
		}
	})
}
