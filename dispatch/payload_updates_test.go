package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// addTexts adds an orchestration that receives texts by updates, and returns all of them after the event "end". Its
// handler returns the text, and its validator rejects texts that begin with "no".
func addTexts(r *perdure.Registry) *perdure.Registry {
	perdure.AddOrchestration(r, "telling", func(ctx *perdure.OrchestrationContext, texts []string) ([]string, error) {
		err := perdure.SetUpdateHandler(ctx, "send", func(_ *perdure.OrchestrationContext, s string) (string, error) {
			texts = append(texts, s)
			return s, nil
		}, perdure.WithValidator(func(s string) error {
			if strings.HasPrefix(s, "no") {
				return errors.New("refused")
			}
			return nil
		}))
		if err != nil {
			return nil, err
		}
		for {
			e, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
			if err != nil || e == "end" {
				return texts, err
			}
			if e == "continue" {
				return perdure.ContinueAsNew[[]string](ctx, texts)
			}
		}
	})
	return r
}

// updateResult is the result of an update that a client receives.
type updateResult struct {
	result json.RawMessage
	err    error
}

func (a updateResult) text() string {
	var s string
	_ = json.Unmarshal(a.result, &s)
	return s
}

// updateBy sends an update from a client to i-1 while the hub runs.
func (h *hub) updateBy(ctx context.Context, c *client.Client, id, text string) (a updateResult) {
	h.t.Helper()
	if c == nil { // a client without a cache
		c = client.New(h.Provider)
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.result, a.err = c.Update(ctx, "i-1", "send", text, client.WithUpdateID(id))
	}()
	h.serveFor(time.Minute)
	<-done
	return a
}

func (h *hub) raiseAndServe(ctx context.Context, c *client.Client, event string) {
	h.t.Helper()
	if err := c.RaiseEvent(ctx, "i-1", "go", event); err != nil {
		h.t.Fatal(err)
	}
	h.serveFor(time.Minute)
}

// TestR28_update_isStoredEncoded checks that with a codec, no part of an update is stored as plain data. The parts are
// the input, which is received before the start or accepted, the handler's result, and the result item. A client with
// the codec receives the result. A client without the codec receives an error with the encoded result.
func TestR28_update_isStoredEncoded(t *testing.T) {
	t.Parallel()
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{
		Registry: addTexts(registry()), Codecs: []perdure.Codec{codec}, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c, blind := client.New(h.Provider, client.WithCodec(codec)), client.New(h.Provider)
		_ = must(c.Start(ctx, "telling", []string{}, client.WithInstanceID("i-1")))
		early := h.updateBy(ctx, c, "u-0", secret)
		if got := h.updateBy(ctx, c, "u-1", secret); early.text() != secret || got.text() != secret || got.err != nil {
			t.Errorf("got %s (error %v) and %s (error %v), want the secret twice",
				early.result, early.err, got.result, got.err)
		}
		if got := h.updateBy(ctx, c, "u-2", "no"+secret); got.err == nil || strings.Contains(got.err.Error(), secret) {
			t.Errorf("got %s, error %v, want a rejection without the secret", got.result, got.err)
		}
		for _, call := range h.made() {
			if in := string(must(json.Marshal(call.Input))); strings.Contains(in, secret) {
				t.Errorf("%s contains the secret: %s", call.Operation, in)
			}
		}
		got := h.updateBy(ctx, blind, "u-3", secret) // sent as plain data, encoded before it is stored in history
		e, ok := errors.AsType[*client.UpdateError](got.err)
		if !ok || e.Code != client.UpdateResultEncoded || e.EncodedResult == nil ||
			e.EncodedResult.Codec != "turned" || !errors.Is(got.err, perdure.ErrUnknownCodec) {
			t.Errorf("got %s, error %v, want an encoded result", got.result, got.err)
		}
		if got := h.updateBy(ctx, c, "u-3", ""); got.text() != secret {
			t.Errorf("got %s, error %v, want the secret", got.result, got.err)
		}
		for _, e := range h.events(h.first(ctx)) {
			if strings.Contains(string(must(json.Marshal(e))), secret) {
				t.Errorf("event %d contains the secret", e.ID)
			}
		}
		h.raiseAndServe(ctx, c, "end")
		if got, err := client.Result[[]string](must(c.Status(ctx, "i-1"))); err != nil ||
			fmt.Sprint(got) != fmt.Sprint([]string{secret, secret, secret}) {
			t.Errorf("got %v, error %v", got, err)
		}
		h.checkIdle()
	})
}

// first returns the instance i-1.
func (h *hub) first(ctx context.Context) provider.Instance {
	h.t.Helper()
	return must(h.Provider.ReadInstance(ctx, "i-1"))
}

// TestR28_updateResult_outlivesItsExecution checks that large inputs and results of updates are in the bucket. A result
// has its own copy, which can be read after the execution is erased. A read stores an expired copy again. Inputs that
// were received before the start or carried over belong to the execution.
func TestR28_updateResult_outlivesItsExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{
		Registry: addTexts(registry()), Bucket: true, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "telling", []string{}, client.WithInstanceID("i-1"), client.WithDelay(30*time.Second)))
		first := h.first(ctx).ExecutionID
		if got := h.updateBy(ctx, c, "u-0", largeText("a")); got.err != nil || marksOf(t, got.text()) != "a" {
			t.Errorf("u-0: got error %v", got.err)
		}
		if got := h.updateBy(ctx, c, "u-1", largeText("b")); got.err != nil || marksOf(t, got.text()) != "b" {
			t.Errorf("u-1: got error %v", got.err)
		}
		if got := h.updateBy(ctx, c, "u-2", "no"+largeText("c")); got.err == nil {
			t.Errorf("u-2: got %s, want a rejection", got.result)
		}

		time.Sleep(61 * 24 * time.Hour) // the result items and their payloads have expired
		h.Cloud.Bucket.Expire(simhub.PayloadBucket, "test/m/", time.Minute)
		h.deployWith(addTexts(registry()), "fresh", nil) // with empty caches
		if got := h.updateBy(ctx, nil, "u-1", ""); got.err != nil || marksOf(t, got.text()) != "b" {
			t.Errorf("repeated update: got error %v", got.err)
		}

		h.raiseAndServe(ctx, c, "continue")
		// like the erasure of the execution
		if err := h.Provider.Payloads().DeletePayloads(ctx, h.keysOf(ctx, first)...); err != nil {
			t.Fatal(err)
		}
		if got := h.updateBy(ctx, nil, "u-1", ""); got.err != nil || marksOf(t, got.text()) != "b" {
			t.Errorf("after its execution is erased: got error %v", got.err)
		}
		h.raiseAndServe(ctx, c, "end")
		if got, err := client.Result[[]string](must(c.Status(ctx, "i-1"))); err != nil || marksOf(t, got...) != "ab" {
			t.Errorf("got %s, error %v, want ab", marksOf(t, got...), err)
		}
	})
}

// keysOf returns the keys of an execution's payloads.
func (h *hub) keysOf(ctx context.Context, executionID string) (keys []string) {
	h.t.Helper()
	for _, p := range must(h.Provider.Payloads().ListPayloads(ctx, provider.PayloadPrefix(executionID), "")) {
		keys = append(keys, p.Key)
	}
	return keys
}

// TestR28_updateResultWithoutBucket_failsAboveTheLimit checks that without a bucket, an update with a result above 200
// KiB fails.
func TestR28_updateResultWithoutBucket_failsAboveTheLimit(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "growing", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		err := perdure.SetUpdateHandler(ctx, "send", func(_ *perdure.OrchestrationContext, s string) (string, error) {
			return largeText(s), nil
		})
		if err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
	})
	for _, bucket := range []bool{false, true} {
		inBubble(t, simhub.Options{Registry: r, Bucket: bucket, CacheBytes: -1}, func(ctx context.Context, h *hub) {
			c := client.New(h.Provider)
			_ = must(c.Start(ctx, "growing", 0, client.WithInstanceID("i-1")))
			got := h.updateBy(ctx, c, "u-1", "a")
			e, ok := errors.AsType[*client.UpdateError](got.err)
			if bucket && (got.err != nil || marksOf(t, got.text()) != "a") ||
				!bucket && (!ok || e.Code != client.UpdateFailed || e.Failure.Type != history.TypePayloadTooLarge) {
				t.Errorf("bucket=%t: got %.100s, error %v", bucket, got.result, got.err)
			}
		})
	}
}

// TestR28_buildWithoutCodec_keepsUpdates checks that a build without the codec does not accept or reject an update. The
// instance is blocked, and the next build processes the update.
func TestR28_buildWithoutCodec_keepsUpdates(t *testing.T) {
	t.Parallel()
	r := addTexts(registry())
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{
		Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "telling", []string{}, client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		h.deployWith(r, "blind", nil)
		short, stop := context.WithTimeout(ctx, 30*time.Second)
		defer stop()
		if got := h.updateBy(short, c, "u-1", secret); !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("got %s, error %v, want a timeout", got.result, got.err)
		}
		h.deployWith(r, "seeing", []perdure.Codec{codec})
		h.serveFor(time.Hour)
		if got := h.updateBy(ctx, c, "u-1", ""); got.text() != secret {
			t.Errorf("got %s, error %v, want the secret", got.result, got.err)
		}
	})
}
