package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// raise puts external events named "add" into the inbox, of these ids and numbers.
func (h *hub) raise(in provider.Instance, id string, n int) {
	h.t.Helper()
	m := provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: id, Data: encoded(h.t, n)}
	if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), m); err != nil {
		h.t.Fatal(err)
	}
}

// read reads the instance.
func (h *hub) read(in provider.Instance) provider.Instance {
	h.t.Helper()
	now, err := h.Provider.ReadInstance(h.t.Context(), in.InstanceID)
	if err != nil {
		h.t.Fatal(err)
	}
	return now
}

// One transaction, and the next execution's first turn at once: no read, no message, nothing acknowledged in between (R3).
func TestR3TheNextExecutionRunsInTheSameInvocation(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "1", 1)
		h.raise(in, "2", 2)
		from := len(h.made())
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("failed")
		}
		want := []string{"ReceiveMessage", "TransactWriteItems", "PutItem", "UpdateItem"}
		if got := h.operations(from)[:4]; !slices.Equal(got, want) {
			t.Errorf("calls %v, want %v", got, want)
		}
		if now := h.read(in); now.ExecutionNumber != 2 || now.Status != provider.StatusRunning {
			t.Errorf("instance %+v", now)
		}
	})
}

// Interleaving: the function dies between the transaction and the first turn of the next execution. Had the messages been
// acknowledged, nothing would ever wake it.
func TestR3NothingIsAcknowledgedBeforeTheNextExecutionHasBegun(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "1", 1)
		h.raise(in, "2", 2)
		continued := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "PutItem" && continued {
				return simhub.ErrCrashed
			}
			continued = continued || c.Operation == "TransactWriteItems"
			return next()
		})
		if failed := h.turn(0); len(failed) != 2 {
			t.Errorf("%d messages failed, want both", len(failed))
		}
		h.interfere(nil)
		h.raise(in, "3", 0)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		if now, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || now.ExecutionNumber != 2 {
			t.Errorf("execution %d, %v", now.ExecutionNumber, err)
		}
	})
}

// Interleaving: events arrive while the instance continues as new, more than an execution takes, some twice. Each counts once.
func TestR3EventsInFlightAreCarriedOver(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		sum := 0
		for i := 1; i <= 25; i++ {
			h.raise(in, fmt.Sprint(i), i)
			sum += i
			if i%3 == 0 {
				time.Sleep(6 * time.Minute) // the queue has forgotten it
				h.raise(in, fmt.Sprint(i-2), i-2)
			}
			if i%7 == 0 {
				h.turn(i % 2)
			}
		}
		h.raise(in, "last", 0)
		if end := h.finish(in); string(end.Output) != fmt.Sprint(sum) {
			t.Errorf("ended with %s %s, want %d", end.String(), end.Output, sum)
		}
		h.checkRest()
	})
}

// Events come before the code asks for them, and stay unobserved through two executions.
func TestR3_eventsThatWereNotObserved_areHandedOn(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "later", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n < 2 {
			if _, err := perdure.WaitForExternalEvent[int](ctx, fmt.Sprint("go-", n)).Await(ctx); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, n+1)
		}
		sum := 0
		for range 3 {
			v, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
			if err != nil {
				return 0, err
			}
			sum = 10*sum + v
		}
		return sum, nil
	})
	inBubble(t, simhub.Options{Registry: r, Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("later", 0)
		h.turn(0)
		for i := 1; i <= 3; i++ {
			h.raise(in, fmt.Sprint(i), i)
		}
		h.turn(0)
		for n := range 2 {
			h.raiseNamed(in, fmt.Sprint("go-", n))
			h.turn(n)
		}
		h.wantOutput(h.read(in), "123")
	})
}

// Interleaving: the first message of all is an event, and the first turn continues as new before it could observe anything. The
// message is what the turn is known by, so it is consumed; the event must not be, nor may it count twice.
func TestR3AnEventThatTriggersAFirstTurnIsCarriedOver(t *testing.T) {
	t.Parallel()
	for _, repeated := range []bool{false, true} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			in := h.start("then-waits", 2)
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, h.receive(h.Provider.Config().InboxURL)...)
			h.raise(in, "e", 7)
			if repeated {
				time.Sleep(6 * time.Minute)
				h.raise(in, "e", 7) // the queue does not know the first any more
			}
			h.raise(in, "f", 1)
			if end := h.finish(in); string(end.Output) != "8" {
				t.Errorf("ended with %s", end.String())
			}
		})
	}
}

// Interleaving: an event was applied by an execution that is over, and its message comes again, behind the fence of the queue's
// own deduplication. The next execution has the watermark, and does not count it.
func TestR3ARedeliveryIsNotAppliedToTheNextExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "", 1) // no id: the watermark alone tells
		h.raise(in, "", 2)
		records := h.receive(h.Provider.Config().InboxURL)
		for range 2 {
			if failed := h.Orchestrators[0].HandleRecords(h.t.Context(), records); len(failed) > 0 {
				t.Fatal("failed")
			}
			for i := range records {
				records[i].ReceiveCount++
			}
		}
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, records...)
		h.raise(in, "", 0)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s %s, want 3", end.String(), end.Output)
		}
	})
}

// The outcome of an activity of an execution that is over says nothing to the next, even where ids are alike.
func TestAnOutcomeOfAnOldExecutionIsDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("again-with", loop{Left: 1})
		h.turn(0)
		time.Sleep(time.Hour)
		fire := provider.Message{Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 3}
		if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), fire); err != nil {
			t.Fatal(err)
		}
		h.turn(0)
		h.complete(in, 2, 6)
		h.turn(0)
		now := h.read(in)
		if now.ExecutionNumber != 2 || now.Status != provider.StatusCompleted {
			t.Fatalf("instance %+v", now)
		}
		h.complete(in, 2, 2) // late, and of an execution that is over
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("it failed")
		}
	})
}

// An orchestration that does nothing but continue must leave the invocation, and can be terminated.
func TestOneThatContinuesForEverCanBeTerminated(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("forever", 0)
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("the turn failed")
		}
		for invocation := int64(1); invocation <= 2; invocation++ { // the second is one that the first has asked for
			if now := h.read(in); now.ExecutionNumber < 100*invocation-50 || now.ExecutionNumber > 100*invocation+50 {
				t.Errorf("%d executions in %d invocations", now.ExecutionNumber, invocation)
			}
			if failed := h.turn(0); len(failed) > 0 {
				t.Error("the turn failed")
			}
		}
		if err := h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "enough"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			h.turn(0)
		}
		if now := h.read(in); now.Status != provider.StatusTerminated {
			t.Errorf("it is %s", now.Status)
		}
	})
}

// It moves on to the highest version there is, unless it was started with one.
func TestContinueAsNewKeepsTheVersionThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{"": `"2"`, "1": `"1"`} {
		old, both := versions("1"), versions("1", "2")
		inBubble(t, simhub.Options{Registry: old, Environments: 1}, func(ctx context.Context, h *hub) {
			start := provider.Start{InstanceID: "i-1", Name: "which", Version: asked, Input: encoded(t, 1), StartID: "s"}
			in, err := h.Provider.StartOrchestration(ctx, start)
			if err != nil {
				t.Fatal(err)
			}
			h.turn(0)
			newer := h.orchestrator(both, "newer")
			h.raise(in, "1", 1)
			h.give(newer)
			end, err := h.Provider.ReadTerminalEvent(ctx, h.read(in).ExecutionID)
			if err != nil || end.Kind != history.OrchestrationCompleted || string(end.Output) != want {
				t.Errorf("asked for %q: %s %s, %v, want %s", asked, end.Kind, end.Output, err, want)
			}
		})
	}
}
