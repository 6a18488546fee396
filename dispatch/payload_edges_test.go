package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// TestR28_startResponseIsLost_keepsItsInput checks a repeated start that finds its own instance in a later execution.
// The input of the first execution remains.
func TestR28_startResponseIsLost_keepsItsInput(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "renewed", func(ctx *perdure.OrchestrationContext, in string) (string, error) {
		if len(in) > perdure.MaxPayloadBytes {
			return perdure.ContinueAsNew[string](ctx, "small")
		}
		return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	})
	var h *hub
	var lost atomic.Bool
	o := simhub.Options{
		Registry: r, Bucket: true, CacheBytes: -1,
		Intercept: func(ctx context.Context, c simaws.Call, next func() error) error {
			err := next()
			if c.Operation == "TransactWriteItems" && err == nil && lost.CompareAndSwap(false, true) {
				// the sweeper sends the wake
				if err := h.Provider.EnqueueForOrchestrator(ctx,
					provider.Message{Kind: provider.MessageWake, InstanceID: "i-1"}); err != nil {
					t.Error(err)
				}
				h.serveFor(time.Hour) // the instance continues before the client retries
				return &smithyhttp.RequestSendError{Err: errors.New("response lost")}
			}
			return err
		},
	}
	inBubble(t, o, func(ctx context.Context, hub *hub) {
		h = hub
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "renewed", largeText("b"), client.WithInstanceID("i-1")))
		in := must(h.Provider.ReadInstance(ctx, "i-1"))
		if in.ExecutionNumber != 2 {
			t.Fatalf("got execution %d, want 2", in.ExecutionNumber)
		}
		if keys := h.keys("x/"); len(keys) != 1 {
			t.Errorf("got payloads %v, want the input of the first execution", keys)
		}
	})
}

// noBucket is a backend without a payload store.
type noBucket struct{ client.Backend }

// TestR28_restartWithoutBucket_isRejected checks that a client without a bucket and a codec starts no instance that
// refers to another instance's payload.
func TestR28_restartWithoutBucket_isRejected(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{
		Registry: repairableRegistry(), Bucket: true, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		past := endRepairable(ctx, h, client.New(h.Provider))
		c := client.New(noBucket{h.Provider})
		for name, opts := range map[string][]client.StartOption{
			"from its beginning": {client.WithInstanceID("again")},
			"from an event":      {client.WithInstanceID("again"), client.FromEvent(lastCut(past))},
		} {
			_, err := c.Restart(ctx, "i-1", opts...)
			if _, ok := errors.AsType[*perdure.PayloadError](err); !ok {
				t.Errorf("%s: got error %v, want PayloadError", name, err)
			}
			if _, err := h.Provider.ReadInstance(ctx, "again"); !errors.Is(err, provider.ErrNotFound) {
				t.Errorf("%s: got error %v, want ErrNotFound", name, err)
			}
		}
	})
}

// TestR28_detailsLikeAReference_areReturnedUnchanged checks heartbeat details and custom statuses that look like a
// payload reference. They are returned unchanged, and no payload is fetched.
func TestR28_detailsLikeAReference_areReturnedUnchanged(t *testing.T) {
	t.Parallel()
	reference := json.RawMessage(fmt.Sprintf(`{"ref":"object:x/00/another/%064d","sha256":"%064d","bytes":7}`, 1, 1))
	r := registry()
	perdure.AddActivity(r, "beats", func(ctx context.Context, _ int) (string, error) {
		if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
			perdure.Heartbeat(ctx, reference)
			return "", errors.New("again")
		}
		left, _ := perdure.HeartbeatDetails[json.RawMessage](ctx)
		return string(left), nil
	})
	perdure.AddOrchestration(r, "beaten", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		ctx.SetCustomStatus(reference)
		return perdure.CallActivityByName[string](ctx, "beats", 0,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Second})).Await(ctx)
	})
	for name, codecs := range map[string][]perdure.Codec{"plain": nil, "with a codec": {&turning{id: "turned"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{
				Registry: r, Codecs: codecs, Bucket: true, CacheBytes: -1,
			}, func(ctx context.Context, h *hub) {
				var opts []client.Option
				if codecs != nil {
					opts = append(opts, client.WithCodec(codecs[0]))
				}
				c := client.New(h.Provider, opts...)
				_ = must(c.Start(ctx, "beaten", 0, client.WithInstanceID("i-1")))
				h.serveFor(time.Hour)
				s := must(c.Status(ctx, "i-1"))
				if left, err := client.Result[string](s); err != nil || left != string(reference) {
					t.Errorf("details: got %s, error %v", left, err)
				}
				if s.EncodedCustomStatus != nil || string(s.CustomStatus) != string(reference) {
					t.Errorf("custom status: got %s, encoded %+v", s.CustomStatus, s.EncodedCustomStatus)
				}
			})
		})
	}
}

// TestR28_encodingFails_blocksInsteadOfParkingPlainData checks a message with plain data that the codec cannot encode.
// The instance is blocked, and SQS redelivers the message. History never contains the plain data. A build whose codec
// works consumes the message.
func TestR28_encodingFails_blocksInsteadOfParkingPlainData(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "waits-twice", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		received, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
		return received + "!", err
	})
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{
		Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		for _, id := range []string{"i-1", "i-2"} {
			_ = must(c.Start(ctx, "waits-twice", 0, client.WithInstanceID(id)))
		}
		h.serveFor(time.Minute)
		codec.fail(perdure.NonRetryable(errors.New("the key is gone")))
		blind := client.New(h.Provider)
		for _, id := range []string{"i-1", "i-2"} {
			if err := blind.RaiseEvent(ctx, id, "go", secret); err != nil {
				t.Fatal(err)
			}
		}
		h.serveFor(6 * time.Hour)
		s := must(c.Status(ctx, "i-1"))
		if s.Status != client.StatusBlocked || s.Failure == nil || s.Failure.Type != history.TypePayloadUnreadable {
			t.Fatalf("got status %s, failure %+v, want Blocked", s.Status, s.Failure)
		}
		// the termination follows the event in the inbox, and needs no codec
		if err := c.Terminate(ctx, "i-2", "enough"); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		if s := must(c.Status(ctx, "i-2")); s.Status != client.StatusTerminated {
			t.Errorf("got status %s, failure %+v, want Terminated", s.Status, s.Failure)
		}
		codec.fail(nil)
		h.serveFor(24 * time.Hour)
		if received, err := client.Result[string](must(c.Status(ctx, "i-1"))); err != nil || received != secret+"!" {
			t.Errorf("got %s, error %v", received, err)
		}
		for _, call := range h.made() {
			if in := string(must(json.Marshal(call.Input))); call.Service == "DynamoDB" &&
				strings.Contains(in, secret) {
				t.Errorf("%s contains the secret: %s", call.Operation, in)
			}
		}
		h.checkRest()
	})
}

// TestR28_resultIsMissing_errorNamesTheKey checks that the error for an output that is missing in the bucket contains
// the key, and does not blame a codec.
func TestR28_resultIsMissing_errorNamesTheKey(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", "c", client.WithInstanceID("i-1")))
		if err := c.RaiseEvent(ctx, "i-1", "note", largeText("t")); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		past := h.events(h.first(ctx))
		key := past[len(past)-1].Output.StorageKey()
		if err := h.Provider.Payloads().DeletePayloads(ctx, key); err != nil {
			t.Fatal(err)
		}
		_, err := client.Result[[]string](must(c.Status(ctx, "i-1")))
		if e, ok := errors.AsType[*perdure.PayloadError](err); !ok || e.Key != key ||
			!errors.Is(err, perdure.ErrPayloadNotFound) {
			t.Errorf("got error %v, want PayloadError for the key of the output", err)
		}
	})
}
