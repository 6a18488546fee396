package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// cancelMessage returns the message with which the parent of startMessage cancels its child.
func cancelMessage(id, startID string) provider.Message {
	return provider.Message{
		Kind: provider.MessageCancel, InstanceID: id, StartID: startID, Reason: "parent_cancelled",
		RequestedBy: "parent:parent",
		Parent:      &history.Parent{InstanceID: "parent", ExecutionID: "px", EventID: 3},
	}
}

// drainInbox receives and deletes the inbox messages, and returns their kinds. The messages are for a parent that does
// not exist.
func (h *hub) drainInbox() (kinds []string) {
	h.t.Helper()
	items, _ := h.Provider.DecodeOrchestrationItems(h.receive(h.Provider.Config().InboxURL))
	for _, it := range items {
		for i := range it.Messages {
			m := &it.Messages[i]
			what := string(m.Kind)
			if m.Error != nil {
				what += " " + m.Error.Type
			}
			kinds = append(kinds, what)
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, m.Record)
		}
	}
	return kinds
}

// wantParentMessages fails the test unless the inbox contains messages of these kinds. It deletes them.
func (h *hub) wantParentMessages(want ...string) {
	h.t.Helper()
	if got := h.drainInbox(); strings.Join(got, ", ") != strings.Join(want, ", ") {
		h.t.Errorf("got messages %q to the parent, want %q", got, want)
	}
}

// 1. A function freezes before it sends the start of a child. A cancel of the child arrives first.
// 2. The session responds to the parent that the child is cancelled.
// 3. The start arrives later and never succeeds.
func TestR16_cancelArrivesBeforeItsStart_childNeverStarts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.send(cancelMessage("c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("the cancel failed")
		}
		h.wantParentMessages("childOutcome cancelled")
		h.send(startMessage(h, "c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("the start failed")
		}
		if n := len(h.workItems()); n > 0 {
			t.Error("the cancelled child runs")
		}
		if _, err := h.Provider.ReadInstance(ctx, "c"); err == nil {
			t.Error("the cancelled child exists")
		}
	})
}

// A batch contains an event without an instance, a cancel, the cancelled start, and another start.
func TestR16_cancelBeforeItsStartInOneBatch_onlyTheOtherStartSucceeds(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		c := provider.Instance{InstanceID: "c"}
		h.raise(c, "early", 1)
		h.send(cancelMessage("c", "s1"), startMessage(h, "c", "s1"), startMessage(h, "c", "s2"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("got failed messages, want none")
		}
		if now := h.read(c); now.StartID != "s2" || len(h.workItems()) != 1 {
			t.Errorf("got instance %+v, want that of the other start", now)
		}
	})
}

// A cancel refers to one start, and does not end another instance with the same ID.
func TestR16_cancelOfAnotherStart_isNotFound(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		h.send(cancelMessage(in.InstanceID, "another"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("the cancel failed")
		}
		h.wantParentMessages("cancelChildOutcome " + history.TypeNotFound)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("the instance ended with %s, want completed", end.Kind)
		}
	})
}

// wantChildResponse fails the test unless the parent's future is cancelled and its history has one response, want,
// about the child.
func (h *hub) wantChildResponse(parent provider.Instance, want string) {
	h.t.Helper()
	if end := h.endsAfter(parent, 0); string(end.Output) != `"0, cancelled (requested): never mind"` {
		h.t.Errorf("the parent ended with %s %s, want a cancelled future", end.Kind, end.Output)
	}
	var answers []string
	for _, e := range h.events(parent) {
		if e.SourceEventID != 3 || e.Kind == history.SubOrchestrationCancelRequested {
			continue
		}
		response := string(e.Kind)
		if e.Error != nil {
			response += fmt.Sprintf(" %s %s: %s", e.InstanceID, e.Error.Type, e.Error.Message)
		}
		answers = append(answers, response)
	}
	if len(answers) != 1 || answers[0] != want {
		h.t.Errorf("got responses %q in the parent's history, want %q", answers, want)
	}
}

// The cancel finds an instance of another start. The parent's history contains that response.
func TestCancelChild_anotherStartHasTheID_failsAsNotFound(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		otherInstance := h.startAs("c", "waits-a-day", 0)
		h.turn(0)
		parent := h.startAs("p", "gives-up-child", 0)
		h.turn(0)
		h.drainInbox() // drops the start of the child
		h.raise(parent, "e", 1)
		for _, step := range []string{
			"the parent cancels", "the other instance refuses", "the parent receives the response",
		} {
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("%s: the message failed", step)
			}
		}
		h.wantChildResponse(parent,
			`SubOrchestrationCancelFailed c `+history.TypeNotFound+`: instance "c" belongs to another start`)
		if s := h.read(otherInstance).Status; s == provider.StatusCancelled {
			t.Error("the other instance is cancelled")
		}
	})
}

// The child has ended before the cancel arrives. If the outcome of the child arrives first, the parent's history
// contains the outcome. If the outcome is lost, the history contains the failure of the cancel.
func TestCancelChild_childHasEnded_parentReceivesOutcomeOrFailure(t *testing.T) {
	t.Parallel()
	t.Run("outcome arrives first", func(t *testing.T) {
		t.Parallel()
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			parent := h.startAs("p", "gives-up-child", 0)
			h.turn(0)
			h.raise(parent, "e", 1)
			h.turn(0) // the child ends while the parent cancels it
			h.serveFor(time.Minute)
			h.wantChildResponse(parent, "SubOrchestrationCompleted")
		})
	})
	t.Run("outcome is lost", func(t *testing.T) {
		t.Parallel()
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			parent := h.startAs("p", "gives-up-child", 0)
			h.turn(0)
			h.turn(0)
			h.wantParentMessages("childOutcome")
			h.raise(parent, "e", 1)
			for _, step := range []string{
				"the parent cancels", "the child refuses", "the parent receives the response",
			} {
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatalf("%s: the message failed", step)
				}
			}
			h.wantChildResponse(parent, `SubOrchestrationCancelFailed c `+history.TypeEnded+`: instance "c" has ended`)
		})
	})
	t.Run("each cancel has a response", func(t *testing.T) {
		t.Parallel()
		testRepeatedCancelOfEndedChild(t)
	})
}

// The outcome of a cancelled activity arrives later. History records it, and the code does not receive it.
func TestCancelActivity_outcomeArrivesLater_codeDoesNotReceiveIt(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]provider.ActivityOutcome{
		"success": {Result: history.Payload("7")},
		"failure": {Error: &history.Failure{Type: "T", Message: "too late"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.start("gives-up-work", 1)
				h.turn(0)
				items := h.workItems()
				h.raise(in, "e", 1)
				h.turn(0)
				o := outcome
				o.ActivityID, o.Attempt = 3, 1
				completed := []provider.CompletedWorkItem{{LockedWorkItem: &items[0], Outcome: &o}}
				refused, err := h.Provider.AckWorkItems(ctx, "default", completed)
				if err != nil || len(refused) > 0 {
					t.Fatal(refused, err)
				}
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatal("the outcome failed")
				}
				if end := h.endsAfter(in, 0); string(end.Output) != `"0, cancelled (requested): never mind"` {
					t.Errorf("the code received %s, want a cancelled future", end.Output)
				}
				recorded := 0
				for _, e := range h.events(in) {
					if e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed {
						recorded++
					}
				}
				if recorded != 1 {
					t.Errorf("got %d recorded outcomes, want 1", recorded)
				}
				h.checkIdle()
			})
		})
	}
}

// testRepeatedCancelOfEndedChild cancels an ended child twice, and expects a response to each cancel.
func testRepeatedCancelOfEndedChild(t *testing.T) {
	t.Helper()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.endedChild()
		for _, delivery := range []string{"the first", "the second"} {
			time.Sleep(6 * time.Minute) // beyond the deduplication interval of the queue
			h.send(cancelMessage("c", "s1"))
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("%s cancel failed", delivery)
			}
			h.wantParentMessages("cancelChildOutcome " + history.TypeEnded)
		}
	})
}

// endsAfter serves for d, sends the event "end", and returns the end event of the instance.
func (h *hub) endsAfter(in provider.Instance, d time.Duration) history.Event {
	h.t.Helper()
	h.serveFor(d)
	m := provider.Message{
		Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "end", EventID: "end",
		Data: encoded(h.t, 1),
	}
	h.send(m)
	return h.finish(in)
}

// An event arrives after the timer has an EventBridge schedule. After the commit, the session deletes the schedule, and
// the timer never fires.
func TestCancelTimer_hasASchedule_deletesIt(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Hour)
		if n := h.Cloud.Schedules.Count(); n != 1 {
			t.Fatalf("got %d schedules after an hour, want 1", n)
		}
		h.raise(in, "e", 1)
		h.serveFor(time.Minute)
		if n := h.Cloud.Schedules.Count(); n != 0 {
			t.Errorf("got %d schedules after the cancellation, want none", n)
		}
		h.Cloud.ResetCounts()
		h.serveFor(48 * time.Hour)
		if got := h.Cloud.Counts(); got["SQS.SendMessageBatch"] > 0 {
			t.Errorf("the cancelled timer fired: %v", got)
		}
		if end := h.endsAfter(in, 0); string(end.Output) != `"event"` {
			t.Errorf("ended with %s, want event", end.Output)
		}
		h.checkIdle()
	})
}

// A cancelled timer in the queue has no schedule, so the session deletes none.
func TestCancelTimer_hasNoSchedule_deletesNone(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Minute)
		h.raise(in, "e", 1)
		h.serveFor(time.Minute)
		for _, op := range h.operations(0) {
			if op == "DeleteSchedule" {
				t.Error("the session deleted a schedule that cannot exist")
			}
		}
		if end := h.endsAfter(in, 48*time.Hour); string(end.Output) != `"event"` {
			t.Errorf("ended with %s, want event", end.Output)
		}
	})
}

// A timer has fired, and its message is in flight when a turn that cancels the timer commits. The next turn drops the
// message.
func TestTimer_firesAfterItsCancel_isDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.turn(0)
		h.raise(in, "e", 1)
		h.turn(0)
		h.send(provider.Message{
			Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1,
			TimerID: 4,
		})
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("the message failed")
		}
		if end := h.endsAfter(in, time.Minute); string(end.Output) != `"event"` {
			t.Errorf("ended with %s, want event", end.Output)
		}
		for _, e := range h.events(in) {
			if e.Kind == history.TimerFired {
				t.Error("history records the cancelled timer as fired")
			}
		}
	})
}

// The process crashes after the commit that cancels a timer, and before it deletes the schedule. The redispatch deletes
// it.
func TestR15_crashBeforeTheScheduleIsDeleted_redispatchDeletesIt(t *testing.T) {
	t.Parallel()
	intercept, crashed := crashOnce(false, func(c simaws.Call) bool { return c.Operation == "DeleteSchedule" })
	inBubble(t, simhub.Options{Intercept: intercept, Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Hour)
		h.raise(in, "e", 1)
		h.serveFor(10 * time.Minute)
		if n := h.Cloud.Schedules.Count(); n != 0 || !crashed.Load() {
			t.Errorf("got %d schedules, want none; crashed: %v", n, crashed.Load())
		}
		if end := h.endsAfter(in, time.Minute); string(end.Output) != `"event"` {
			t.Errorf("ended with %s, want event", end.Output)
		}
	})
}

// Parents cancel children of one ID that never started. The tombstone of the ID does not grow without limit, and each
// parent receives a response. The first starts remain rejected.
func TestR16_tenThousandCancelsOfOneID_fitItsTombstone(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, deleting := range []bool{false, true} {
		inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
			if deleting {
				in := h.start("chain", 1)
				h.turn(0)
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if c.Operation == "SendMessageBatch" || c.Operation == "UpdateItem" {
						return simhub.ErrCrashed
					}
					return next()
				})
				if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err == nil {
					t.Fatal("the deletion succeeded, want it to fail halfway")
				}
				h.interfere(nil)
			}
			h.Cloud.ResetCounts()
			const cancels = 10_000
			for i := range cancels {
				m := cancelMessage("i-1", fmt.Sprintf("01JEXECUTIONOFAPARENT:%d", i))
				m.Parent.EventID = int64(i)
				if err := h.Provider.RejectCancel(ctx, &provider.InboxMessage{Message: m}); err != nil {
					t.Fatal(err)
				}
			}
			if n := h.Cloud.Counts()["SQS.SendMessageBatch"]; n != cancels {
				t.Errorf("got %d responses, want %d", n, cancels)
			}
			past, _ := h.item("i#i-1", "i")["past"].(*ddbtypes.AttributeValueMemberSS)
			if past == nil {
				t.Fatalf("deleting: %v: got no past starts", deleting)
			}
			if len(past.Value) != 256 {
				t.Fatalf("deleting: %v: got %d past starts, want 256", deleting, len(past.Value))
			}
			if deleting {
				if err := h.Provider.DeleteInstance(ctx, "i-1", false); err != nil {
					t.Fatal(err)
				}
			}
			for _, start := range []string{"01JEXECUTIONOFAPARENT:0", "01JEXECUTIONOFAPARENT:255"} {
				m := startMessage(h, "i-1", start)
				_, err := h.Provider.CreateOrchestration(ctx, &provider.InboxMessage{Message: m})
				if !errors.Is(err, provider.ErrAlreadyExists) {
					t.Errorf("start %s: got error %v, want ErrAlreadyExists", start, err)
				}
			}
		})
	}
}
