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

// raise sends an external event named "add" to the inbox.
func (h *hub) raise(in provider.Instance, id string, n int) {
	h.t.Helper()
	m := provider.Message{
		Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: id, Data: encoded(h.t, n),
	}
	if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), m); err != nil {
		h.t.Fatal(err)
	}
}

// read reads the current state of the instance.
func (h *hub) read(in provider.Instance) provider.Instance {
	h.t.Helper()
	now, err := h.Provider.ReadInstance(h.t.Context(), in.InstanceID)
	if err != nil {
		h.t.Fatal(err)
	}
	return now
}

// Continue-as-new is one transaction. The first turn of the next execution follows without a read, a message or an
// acknowledgement in between (R3).
func TestR3_continueAsNew_nextExecutionRunsInTheSameInvocation(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "1", 1)
		h.raise(in, "2", 2)
		from := len(h.made())
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("got failed messages, want none")
		}
		want := []string{"ReceiveMessage", "TransactWriteItems", "PutItem", "UpdateItem"}
		if got := h.operations(from)[:4]; !slices.Equal(got, want) {
			t.Errorf("got calls %v, want %v", got, want)
		}
		if now := h.read(in); now.ExecutionNumber != 2 || now.Status != provider.StatusRunning {
			t.Errorf("got instance %+v, want execution 2 running", now)
		}
	})
}

// The function crashes after the transaction of continue-as-new, and before the first turn of the next execution. The
// messages are not acknowledged, so a redelivery runs that turn.
func TestR3_crashBeforeTheNextExecution_nothingIsAcknowledged(t *testing.T) {
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
			t.Errorf("got %d failed messages, want both", len(failed))
		}
		h.interfere(nil)
		h.raise(in, "3", 0)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s %s, want 3", end.String(), end.Output)
		}
		if now, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || now.ExecutionNumber != 2 {
			t.Errorf("got execution %d, %v, want 2", now.ExecutionNumber, err)
		}
	})
}

// Events arrive while an instance continues as new, more than an execution consumes, and some twice. Each counts once.
func TestR3_eventsArriveDuringContinueAsNew_countOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		sum := 0
		for i := 1; i <= 25; i++ {
			h.raise(in, fmt.Sprint(i), i)
			sum += i
			if i%3 == 0 {
				time.Sleep(6 * time.Minute) // beyond the deduplication interval of the queue
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
		h.checkIdle()
	})
}

// Events arrive before the code waits for them, and remain unobserved through two executions.
func TestR3_unobservedEvents_areCarriedOver(t *testing.T) {
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

// 1. An event is the first message of an instance. The first turn continues as new before it observes the event.
// 2. The turn consumes the message, because its watermark identifies the turn.
// 3. The next execution receives the event, and a repetition of the event does not count again.
func TestR3_eventTriggersFirstTurnThatContinuesAsNew_isCarriedOver(t *testing.T) {
	t.Parallel()
	for _, repeated := range []bool{false, true} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			in := h.start("then-waits", 2)
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, h.receive(h.Provider.Config().InboxURL)...)
			h.raise(in, "e", 7)
			if repeated {
				time.Sleep(6 * time.Minute)
				h.raise(in, "e", 7) // beyond the deduplication interval of the queue
			}
			h.raise(in, "f", 1)
			if end := h.finish(in); string(end.Output) != "8" {
				t.Errorf("ended with %s", end.String())
			}
		})
	}
}

// An execution that has ended consumed events. Their messages are redelivered. The next execution has the watermark and
// does not consume them again.
func TestR3_redeliveryAfterContinueAsNew_isDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "", 1) // without an ID, so only the watermark identifies the event
		h.raise(in, "", 2)
		records := h.receive(h.Provider.Config().InboxURL)
		for range 2 {
			if failed := h.Orchestrators[0].HandleRecords(h.t.Context(), records); len(failed) > 0 {
				t.Fatal("got failed messages, want none")
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

// The outcome of an activity of an ended execution has no effect on the next execution, even if IDs are equal.
func TestContinueAsNew_outcomeOfAnOldExecution_isDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("again-with", loop{Left: 1})
		h.turn(0)
		time.Sleep(time.Hour)
		fire := provider.Message{
			Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 3,
		}
		if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), fire); err != nil {
			t.Fatal(err)
		}
		h.turn(0)
		h.complete(in, 2, 6)
		h.turn(0)
		now := h.read(in)
		if now.ExecutionNumber != 2 || now.Status != provider.StatusCompleted {
			t.Fatalf("got instance %+v, want execution 2 completed", now)
		}
		h.complete(in, 2, 2) // late, for the ended execution
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("the outcome failed")
		}
	})
}

// An orchestration that only continues as new leaves the invocation after 100 executions, and can be terminated.
func TestContinueAsNew_endless_canBeTerminated(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("forever", 0)
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("the turn failed")
		}
		for invocation := int64(1); invocation <= 2; invocation++ { // the first sends the wake for the second
			if now := h.read(in); now.ExecutionNumber < 100*invocation-50 || now.ExecutionNumber > 100*invocation+50 {
				t.Errorf("got %d executions after %d invocations, want about 100 each", now.ExecutionNumber, invocation)
			}
			if failed := h.turn(0); len(failed) > 0 {
				t.Error("the turn failed")
			}
		}
		terminate := provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "enough"}
		if err := h.Provider.EnqueueForOrchestrator(ctx, terminate); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			h.turn(0)
		}
		if now := h.read(in); now.Status != provider.StatusTerminated {
			t.Errorf("the instance is %s, want terminated", now.Status)
		}
	})
}

// After 100 executions another invocation continues an orchestration, because of messages that wait or because of a
// wake. All turns are committed, so an interceptor receives no error.
func TestContinueAsNew_invocationLimit_interceptorSeesNoError(t *testing.T) {
	t.Parallel()
	for waiting, redelivered := range map[int]bool{0: false, 3: true} {
		w := &turnRecorder{}
		inBubble(t, simhub.Options{Interceptors: []perdure.Interceptor{w.interceptor()}},
			func(ctx context.Context, h *hub) {
				in := h.start("forever", 0)
				for i := range waiting {
					m := provider.Message{
						Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "unread",
						EventID: fmt.Sprint(i),
					}
					if err := h.Provider.EnqueueForOrchestrator(ctx, m); err != nil {
						t.Fatal(err)
					}
				}
				if failed := h.turn(0); len(failed) > 0 != redelivered {
					t.Errorf("%d messages: %d are redelivered", waiting, len(failed))
				}
				if len(w.results) < 100 {
					t.Errorf("%d messages: got %d turns, want at least 100", waiting, len(w.results))
				}
				for i, r := range w.results {
					if r.Err != nil || !r.Committed {
						t.Errorf("%d messages: turn %d has result %+v, want a committed turn", waiting, i, r)
					}
				}
			})
	}
}

// Continue-as-new uses the highest registered version, unless the instance was started with a version.
func TestContinueAsNew_startedWithAVersion_keepsIt(t *testing.T) {
	t.Parallel()
	for queried, want := range map[string]string{"": `"2"`, "1": `"1"`} {
		old, both := versions("1"), versions("1", "2")
		inBubble(t, simhub.Options{Registry: old, Environments: 1}, func(ctx context.Context, h *hub) {
			start := provider.Start{
				InstanceID: "i-1", Name: "which", Version: queried, Input: encoded(t, 1), StartID: "s",
			}
			in, err := h.Provider.StartOrchestration(ctx, start)
			if err != nil {
				t.Fatal(err)
			}
			h.turn(0)
			newer := h.orchestrator(both, "newer")
			h.raise(in, "1", 1)
			h.passRecords(newer)
			end, err := h.Provider.ReadTerminalEvent(ctx, h.read(in).ExecutionID)
			if err != nil || end.Kind != history.OrchestrationCompleted || string(end.Output) != want {
				t.Errorf("started with version %q: ended with %s %s, %v, want %s",
					queried, end.Kind, end.Output, err, want)
			}
		})
	}
}
