package dispatch_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// randomText returns text that does not compress. Each seed has a different text.
func randomText(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n*3/4)
	for i := range b {
		if i%8 == 0 && len(b)-i >= 8 {
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
		}
	}
	return base64.StdEncoding.EncodeToString(b)
}

// cancelsMany returns an orchestration that cancels a number of activities in each turn, with different messages. It
// returns the length of the error of the last.
func cancelsMany(turns, each, bytes int) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "cancels", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		length := 0
		for turn := range turns {
			for i := range each {
				f := perdure.CallActivityByName[int](ctx, "missing", 1)
				f.Cancel(randomText(uint64(turn*each+i), bytes))
				if _, err := f.Await(ctx); err != nil {
					length = len(err.Error())
				}
			}
			if err := perdure.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
		}
		return length, nil
	})
	return r
}

// A cancellation message of several megabytes is truncated, in history and in messages of other clients.
func TestCancelRecord_oversizedMessage_isCut(t *testing.T) {
	t.Parallel()
	o := simhub.Options{Registry: cancelsMany(1, 1, 6<<20), ResendAfterDeliveries: -1}
	inBubble(t, o, func(_ context.Context, h *hub) {
		in := h.start("cancels", 0)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Fatalf("ended with %s: %+v", end.String(), end.Error)
		}
		for _, e := range h.events(in) {
			cut := len(e.Message) <= history.MaxCancelMessageBytes && strings.HasSuffix(e.Message, " bytes)")
			if e.Kind == history.ActivityCancelRequested && !cut {
				t.Errorf("got a message of %d bytes in history: …%s",
					len(e.Message), e.Message[max(0, len(e.Message)-30):])
			}
		}
		h.checkIdle()
	})
	for _, kind := range []provider.MessageKind{
		provider.MessageCancel, provider.MessageTerminate,
	} { // by another client
		inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(_ context.Context, h *hub) {
			in := h.start("sleeper", 0)
			h.turn(0)
			h.send(provider.Message{
				Kind: kind, InstanceID: in.InstanceID, Text: randomText(1, 600<<10), Reason: "requested",
				RequestedBy: history.RequestedByClient,
			})
			end := h.finish(in)
			if len(end.Message) > history.MaxCancelMessageBytes || !strings.HasSuffix(end.Message, " bytes)") {
				t.Errorf("%s: ended with a message of %d bytes, want it cut", kind, len(end.Message))
			}
		})
	}
}

// An execution has many cancellations with messages of the maximum length. Together they exceed a transaction.
func TestCancelRecord_1500LongMessages_fit(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	inBubble(t, simhub.Options{Registry: cancelsMany(5, 300, 4<<10), ResendAfterDeliveries: -1},
		func(ctx context.Context, h *hub) {
			in := h.start("cancels", 0)
			if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
				t.Fatalf("ended with %s: %+v", end.String(), end.Error)
			}
			record, _, err := h.Provider.ReadCancels(ctx, in.ExecutionID, 0)
			if err != nil {
				t.Fatal(err)
			}
			bytes, whole := 0, 0
			for i := range record {
				bytes += len(record[i].Message)
				if len(record[i].Message) == history.MaxCancelMessageBytes {
					whole++
				}
			}
			if len(record) != 1500 || whole == 0 {
				t.Errorf("got %d decisions, %d of them with the whole message", len(record), whole)
			}
			t.Logf("1,500 cancellations with 4 KiB each: %d bytes of messages in the record, %d of them whole",
				bytes, whole)
			h.checkIdle()
		})
}

// A turn cancels more activities than a transaction can hold. The instance fails with that reason, and its activities
// are cancelled.
func TestCancelRecord_turnCancelsTooMany_instanceFails(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const many = 36_000
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "cancels", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		for i := range many {
			perdure.CallActivityByName[int](ctx, "missing", 1).Cancel(randomText(uint64(i), 32))
		}
		_, err := perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
		return 0, err
	})
	inBubble(t, simhub.Options{Registry: r, ResendAfterDeliveries: -1}, func(_ context.Context, h *hub) {
		in := h.start("cancels", 0)
		h.turn(0)
		h.raise(in, "e", 1)
		end := h.finish(in)
		if end.Kind != history.OrchestrationFailed || end.Error.Type != history.TypePayloadTooLarge ||
			!strings.Contains(end.Error.Message, "cancellations of activities") {
			t.Errorf("ended with %s: %s", end.String(), fmt.Sprint(end.Error))
		}
	})
}

// Several turns together cancel more than a transaction can hold. Each turn commits its own cancellations, and the
// instance continues.
func TestCancelRecord_cancellationsOfSeveralTurns_mayExceedACommit(t *testing.T) {
	t.Parallel()
	const turns, each = 5, 250
	inBubble(t, simhub.Options{Registry: cancelsMany(turns, each, 4<<10), ResendAfterDeliveries: -1},
		func(ctx context.Context, h *hub) {
			in := h.start("cancels", 0)
			if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
				t.Fatalf("ended with %s: %+v", end.String(), end.Error)
			}
			record, _, err := h.Provider.ReadCancels(ctx, in.ExecutionID, 0)
			if err != nil {
				t.Fatal(err)
			}
			bytes := 0
			for i := range record {
				bytes += len(record[i].Message)
			}
			if len(record) != turns*each || bytes < turns*(240<<10) {
				t.Errorf("got %d decisions with %d bytes of messages, want %d", len(record), bytes, turns*each)
			}
		})
}
