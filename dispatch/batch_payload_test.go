package dispatch_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// Ten messages of nearly 1 MiB exceed the payload limit of an invocation, 6 MB. Turns and workers receive such batches
// in parts. No message is lost, and no activity runs twice.
func TestBatch_overThePayloadLimit_losesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	const activities, size = 80, 90 << 10 // a quotation mark takes two bytes in a payload, and four in an event
	var begun atomic.Int64
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "echo", func(_ context.Context, in string) (string, error) {
		begun.Add(1)
		return in, nil
	})
	perdure.AddOrchestration(r, "echoes", func(ctx *perdure.OrchestrationContext, n int) (bytes int, err error) {
		var calls []*perdure.Future[string]
		for range n {
			calls = append(calls, perdure.CallActivityByName[string](ctx, "echo", strings.Repeat(`"`, size)))
		}
		for _, call := range calls {
			text, err := call.Await(ctx)
			if err != nil {
				return 0, err
			}
			bytes += len(text)
		}
		return bytes, nil
	})
	var parts payloadMonitor
	inBubble(t, simhub.Options{Registry: r, Intercept: parts.observe}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "echoes", activities, client.WithInstanceID("i-1")))
		h.serveFor(10 * time.Minute)
		n, err := client.Result[int](must(c.Status(ctx, "i-1")))
		if err != nil || n != activities*size || begun.Load() != activities {
			t.Errorf("got %d bytes, error %v, %d activity runs; want %d bytes, %d runs",
				n, err, begun.Load(), activities*size, activities)
		}
	})
	if largest := parts.largest.Load(); largest > 6<<20 || largest < 5<<20 {
		t.Errorf("the largest event has %d bytes, want at most %d and nearly as many", largest, 6<<20)
	}
}

// payloadMonitor records the size of the largest event with which a function is invoked.
type payloadMonitor struct{ largest atomic.Int64 }

func (w *payloadMonitor) observe(_ context.Context, c simaws.Call, next func() error) error {
	messages, ok := c.Input.([]sqstypes.Message)
	if !ok || c.Operation != "Invoke" {
		return next()
	}
	var e events.SQSEvent
	for _, m := range messages {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
		})
	}
	event, err := json.Marshal(&e)
	if err != nil {
		return err
	}
	for size := int64(len(event)); ; {
		if largest := w.largest.Load(); size <= largest || w.largest.CompareAndSwap(largest, size) {
			return next()
		}
	}
}
