package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A segment with many outputs has a cursor, so that a redispatch continues at the position of the previous dispatch.

// wideRegistry returns a registry of orchestrations whose turns have many outputs.
func wideRegistry() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "wide", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for i := range n {
			perdure.CallActivity(ctx, inc, i)
		}
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	})
	perdure.AddOrchestration(r, "everything", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for i := range n {
			perdure.CallActivity(ctx, inc, i, perdure.WithScheduleToCloseTimeout(time.Hour))
			perdure.CreateTimer(ctx, time.Minute)
			perdure.CallSubOrchestrationByName[int](ctx, "nothing", i)
			perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere")).Call(ctx, i)
		}
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	})
	perdure.AddOrchestration(r, "wide-parent", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for i := range n {
			perdure.CallSubOrchestrationByName[int](ctx, "waits-long", i)
		}
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	})
	perdure.AddOrchestration(r, "waits-long", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	return r
}

// sentBy counts the messages that SQS accepted by their subject.
func sentBy(calls []simaws.Call) map[string]int {
	sent := map[string]int{}
	for _, c := range calls {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok {
			continue
		}
		for _, e := range in.Entries {
			var m struct {
				Kind       string `json:"kind"`
				StartID    string `json:"startId"`
				ActivityID int64  `json:"activityId"`
				TimerID    int64  `json:"timerId"`
			}
			if json.Unmarshal([]byte(*e.MessageBody), &m) == nil && m.Kind != string(provider.MessageWake) {
				sent[fmt.Sprint(m.Kind, m.StartID, " activity ", m.ActivityID, " timer ", m.TimerID)]++
			}
		}
	}
	return sent
}

// failEveryNth makes every n-th send fail permanently.
func (h *hub) failEveryNth(each int) {
	sends := 0
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if _, send := c.Input.(*sqs.SendMessageBatchInput); send {
			h.mu.Lock()
			defer h.mu.Unlock()
			if sends++; sends%each == 0 {
				h.calls = slices.DeleteFunc(h.calls, func(made simaws.Call) bool { return made.Number == c.Number })
				return errAccess
			}
		}
		return next()
	})
}

// deliverAlone delivers the messages of the instance whose message is first in the inbox, until they are processed. It
// deletes all other messages, and returns the number of deliveries.
func (h *hub) deliverAlone() (deliveries int) {
	h.t.Helper()
	group := ""
	for idle := 0; idle < 10; {
		records := h.receive("sim://inbox.fifo")
		if len(records) == 0 {
			idle++
			time.Sleep(time.Minute)
			continue
		}
		idle = 0
		for _, r := range records {
			if group == "" {
				group = r.Group
			}
			var failed []string
			if r.Group == group {
				failed = h.Orchestrators[0].HandleRecords(h.t.Context(), []provider.Record{r})
				deliveries++
			}
			if len(failed) == 0 {
				_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, r)
			}
		}
	}
	return deliveries
}

// One turn has activities with time limits, timers, children and undeliverable outputs, and its sends fail repeatedly.
// Every output is sent or recorded as failed, and few outputs are sent twice.
func TestR9_sendsOfALargeTurnFail_everyOutputIsSentOrRecorded(t *testing.T) {
	t.Parallel()
	const n = 1000
	inBubble(t, simhub.Options{Registry: wideRegistry()}, func(_ context.Context, h *hub) {
		in := h.start("everything", n)
		h.failEveryNth(300)
		deliveries := h.deliverAlone()
		sent := sentBy(h.made())
		const outputs = 4 * n // an activity, its time limit, a timer, a child
		again := 0
		for _, times := range sent {
			again += times - 1
		}
		if len(sent) != outputs || again > outputs/5 || deliveries < 2 {
			t.Errorf("got %d of %d outputs sent, %d of them again, in %d deliveries",
				len(sent), outputs, again, deliveries)
		}
		failures := 0
		for _, e := range h.events(in) {
			if e.Kind == history.OutputFailed {
				failures++
			}
		}
		if failures != n {
			t.Errorf("got %d failed outputs in history, want %d", failures, n)
		}
		t.Logf("%d outputs, %d of them sent again, in %d deliveries", outputs, again, deliveries)
	})
}

// A turn of a thousand activities makes no more calls than a turn of ten, except for its sends. A larger turn also
// writes its cursor a few times.
func TestCost_largeTurn_isOneCommitAndAFewCursors(t *testing.T) {
	t.Parallel()
	for n, cursors := range map[int]int64{10: 0, 1000: 0, 1001: 1, 10_000: 6} {
		inBubble(t, simhub.Options{Registry: wideRegistry()}, func(_ context.Context, h *hub) {
			h.start("wide", n)
			h.Cloud.ResetCounts()
			h.turn(0)
			got := h.Cloud.Counts()
			commits := got["DynamoDB.PutItem"] + got["DynamoDB.TransactWriteItems"] - cursors
			if commits != 1 || got["DynamoDB.UpdateItem"] != 1 || got["DynamoDB.Query"] != 1 ||
				got["DynamoDB.GetItem"] != 0 {
				t.Errorf("%d activities: got calls %v, want one commit, one status and %d cursors", n, got, cursors)
			}
		})
	}
}

// An earlier release, which stores no cursors, has sent a part of a large turn. The whole turn is resent.
func TestOutbox_largeTurnWithoutCursor_isSentAgain(t *testing.T) {
	t.Parallel()
	const n = 3000
	inBubble(t, simhub.Options{Registry: wideRegistry()}, func(_ context.Context, h *hub) {
		in := h.start("wide", n)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if put, ok := c.Input.(*dynamodb.PutItemInput); ok && strings.HasPrefix(text(put.Item, "sk"), "o#") {
				return errAccess
			}
			return next()
		})
		records := h.receive("sim://inbox.fifo")
		for range 2 { // the process crashed before it deleted the message
			if failed := h.Orchestrators[0].HandleRecords(t.Context(), records); len(failed) > 0 {
				t.Fatal(failed)
			}
		}
		if sent := sentBy(h.made()); len(sent) != n || slices.Min(slices.Collect(maps.Values(sent))) != 2 {
			t.Errorf("%d of %d were sent, or some not twice", len(sent), n)
		}
		if it := h.item("x#"+in.ExecutionID, "o#0000000001"); it != nil {
			t.Errorf("got cursor %v, want none", it)
		}
	})
}

// A redelivery after all outputs were sent resends no output, even much later. A purge leaves no cursor.
func TestR4_largeTurnIsRedelivered_sendsNothingAgain(t *testing.T) {
	t.Parallel()
	const n = 3000
	inBubble(t, simhub.Options{Registry: wideRegistry(), Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("wide", n)
		records := h.receive("sim://inbox.fifo")
		for _, environment := range []int{0, 1, 1} {
			if failed := h.Orchestrators[environment].HandleRecords(ctx, records); len(failed) > 0 {
				t.Fatal(failed)
			}
		}
		if sent := sentBy(h.made()); len(sent) != n || slices.Max(slices.Collect(maps.Values(sent))) != 1 {
			t.Errorf("%d of %d were sent, or some twice", len(sent), n)
		}
		cursor := h.item("x#"+in.ExecutionID, "o#0000000001")
		if cursor["ttl"] == nil {
			t.Errorf("cursor never expires: %v", cursor)
		}
		if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil {
			t.Fatal(err)
		}
		if it := h.item("x#"+in.ExecutionID, "o#0000000001"); it != nil {
			t.Errorf("the purge left %v", it)
		}
	})
}

// A purge that cancels many children also continues at the position of the previous call.
func TestR17_deletionOfManyChildren_continuesOverSeveralCalls(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const n = 4000
	inBubble(t, simhub.Options{Registry: wideRegistry()}, func(ctx context.Context, h *hub) {
		in := h.start("wide-parent", n)
		h.turn(0)
		h.failEveryNth(230)
		before, calls := len(h.made()), 1
		for ; h.Provider.DeleteInstance(ctx, in.InstanceID, true) != nil; calls++ {
			if calls > 20 {
				t.Fatalf("the deletion does not finish within %d calls", 20)
			}
		}
		all := 0
		sent := sentBy(h.made()[before:])
		for _, times := range sent {
			all += times
		}
		if len(sent) != n || float64(all) > 1.3*n || calls < 2 {
			t.Errorf("got %d of %d children cancelled, by %d messages, in %d calls", len(sent), n, all, calls)
		}
		t.Logf("%d children, %d messages, %d calls", n, all, calls)
	})
}

// A Scheduler that does not delete schedules does not delay the turn that cancels the timers, or the end. Later timer
// messages are dropped.
func TestR15_schedulesCannotBeDeleted_theirMessagesAreDropped(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "patient", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for range n {
			perdure.CreateTimer(ctx, 3*time.Hour)
		}
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	})
	for name, refusal := range map[string]error{"throttled": simaws.SchedulesThrottled(), "refused": errAccess} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			o := simhub.Options{
				Registry: r,
				Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
					if c.Operation == "DeleteSchedule" {
						tries.Add(1)
						return refusal
					}
					return next()
				},
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				const n = 60
				in := h.start("patient", n)
				h.serveFor(time.Hour)
				h.raise(in, "e", 7)
				began := time.Now()
				if failed := h.turn(0); len(failed) > 0 || time.Since(began) > 5*time.Second {
					t.Errorf("got failed records %v after %v", failed, time.Since(began))
				}
				h.wantStatusShown(in.InstanceID, provider.StatusCompleted, "")
				if left := h.Cloud.Schedules.Count(); left != n || tries.Load() == 0 {
					t.Errorf("got %d schedules, want %d; %d tries to delete", left, n, tries.Load())
				}
				h.serveFor(3 * time.Hour)
				h.checkRest()
			})
		})
	}
}
