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

// cancelMessage is a cancel as the parent of startMessage sends it.
func cancelMessage(id, startID string) provider.Message {
	return provider.Message{
		Kind: provider.MessageCancel, InstanceID: id, StartID: startID, Reason: "parent_cancelled", RequestedBy: "parent:parent",
		Parent: &history.Parent{InstanceID: "parent", ExecutionID: "px", EventID: 3},
	}
}

// told are the messages for the parent, which is no instance here.
func (h *hub) told() (kinds []string) {
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

func (h *hub) wantTold(want ...string) {
	h.t.Helper()
	if got := h.told(); strings.Join(got, ", ") != strings.Join(want, ", ") {
		h.t.Errorf("the parent is told %q, want %q", got, want)
	}
}

// Interleaving: the cancel overtakes the start, which was sent by a function that was frozen in between. The start can then
// never succeed, and the parent is told that its child is cancelled, before or after.
func TestR16ACancelThatOvertakesTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.send(cancelMessage("c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("it failed")
		}
		h.wantTold("childOutcome cancelled")
		h.send(startMessage(h, "c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("the start failed")
		}
		if n := len(h.workItems()); n > 0 {
			t.Error("a cancelled child runs")
		}
		if _, err := h.Provider.ReadInstance(ctx, "c"); err == nil {
			t.Error("a cancelled child is there")
		}
	})
}

// Interleaving: both are in one batch, the cancel first, with messages that are nobody's around it.
func TestR16ACancelBeforeTheStartInOneBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		c := provider.Instance{InstanceID: "c"}
		h.raise(c, "early", 1)
		h.send(cancelMessage("c", "s1"), startMessage(h, "c", "s1"), startMessage(h, "c", "s2"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("it failed")
		}
		if now := h.read(c); now.StartID != "s2" || len(h.workItems()) != 1 {
			t.Errorf("instance %+v, want that of the other start", now)
		}
	})
}

// A cancel is for one start: it must not end whoever has the id instead.
func TestR16ACancelOfAnotherStartIsNotFound(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		h.send(cancelMessage(in.InstanceID, "another"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("it failed")
		}
		h.wantTold("cancelChildOutcome " + history.TypeNotFound)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s", end.Kind)
		}
	})
}

// wantAnswer fails unless the parent has one answer of the child that it gave up, and has settled its own future by itself.
func (h *hub) wantAnswer(parent provider.Instance, want string) {
	h.t.Helper()
	if end := h.endsAfter(parent, 0); string(end.Output) != `"0, cancelled (requested): never mind"` {
		h.t.Errorf("the parent ended with %s %s", end.Kind, end.Output)
	}
	var answers []string
	for _, e := range h.events(parent) {
		if e.SourceEventID != 3 || e.Kind == history.SubOrchestrationCancelRequested {
			continue
		}
		answer := string(e.Kind)
		if e.Error != nil {
			answer += fmt.Sprintf(" %s %s: %s", e.InstanceID, e.Error.Type, e.Error.Message)
		}
		answers = append(answers, answer)
	}
	if len(answers) != 1 || answers[0] != want {
		h.t.Errorf("the parent's history has the answers %q, want %q", answers, want)
	}
}

// The cancel finds another instance of that id: that is what the parent's history says, where the start has not been answered before.
func TestCancelChildNotFound(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		stranger := h.startAs("c", "waits-a-day", 0)
		h.turn(0)
		parent := h.startAs("p", "gives-up-child", 0)
		h.turn(0)
		h.told() // its start of the child is nowhere
		h.raise(parent, "e", 1)
		for _, step := range []string{"the parent gives up", "the other instance is asked", "the parent is answered"} {
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("%s: it failed", step)
			}
		}
		h.wantAnswer(parent, `SubOrchestrationCancelFailed c `+history.TypeNotFound+`: instance "c" belongs to another start`)
		if s := h.read(stranger).Status; s == provider.StatusCancelled {
			t.Error("the other instance is cancelled")
		}
	})
}

// The child is over when the cancel comes: the parent is told that. How the child ended says more, and is told before; where that is
// nowhere, the parent's history says why the child was not cancelled.
func TestCancelChildAlreadyTerminal(t *testing.T) {
	t.Parallel()
	t.Run("its outcome is told first", func(t *testing.T) {
		t.Parallel()
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			parent := h.startAs("p", "gives-up-child", 0)
			h.turn(0)
			h.raise(parent, "e", 1)
			h.turn(0) // the child ends while its parent gives it up
			h.serveFor(time.Minute)
			h.wantAnswer(parent, "SubOrchestrationCompleted")
		})
	})
	t.Run("its outcome is nowhere", func(t *testing.T) {
		t.Parallel()
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			parent := h.startAs("p", "gives-up-child", 0)
			h.turn(0)
			h.turn(0)
			h.wantTold("childOutcome")
			h.raise(parent, "e", 1)
			for _, step := range []string{"the parent gives up", "the child is asked", "the parent is answered"} {
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatalf("%s: it failed", step)
				}
			}
			h.wantAnswer(parent, `SubOrchestrationCancelFailed c `+history.TypeEnded+`: instance "c" has ended`)
		})
	})
	t.Run("it is told each time", func(t *testing.T) {
		t.Parallel()
		tellsThatItIsOver(t)
	})
}

// An activity's outcome that comes after it was given up is recorded, and the code does not hear of it.
func TestCompletionAfterCancelIsFiltered(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]provider.ActivityOutcome{
		"it succeeded": {Result: history.Payload("7")},
		"it failed":    {Error: &history.Failure{Type: "T", Message: "too late"}},
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
				refused, err := h.Provider.AckWorkItems(ctx, "default", []provider.CompletedWorkItem{{LockedWorkItem: &items[0], Outcome: &o}})
				if err != nil || len(refused) > 0 {
					t.Fatal(refused, err)
				}
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatal("it failed")
				}
				if end := h.endsAfter(in, 0); string(end.Output) != `"0, cancelled (requested): never mind"` {
					t.Errorf("the code was told %s", end.Output)
				}
				recorded := 0
				for _, e := range h.events(in) {
					if e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed {
						recorded++
					}
				}
				if recorded != 1 {
					t.Errorf("the outcome is recorded %d times", recorded)
				}
				h.checkRest()
			})
		})
	}
}

func tellsThatItIsOver(t *testing.T) {
	t.Helper()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.endedChild()
		for _, delivery := range []string{"the first", "the second"} {
			time.Sleep(6 * time.Minute) // the queue has forgotten it
			h.send(cancelMessage("c", "s1"))
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("%s failed", delivery)
			}
			h.wantTold("cancelChildOutcome " + history.TypeEnded)
		}
	})
}

// endsAfter raises the event that "waits-a-day" ends with, and serves for so long before.
func (h *hub) endsAfter(in provider.Instance, d time.Duration) history.Event {
	h.t.Helper()
	h.serveFor(d)
	m := provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "end", EventID: "end", Data: encoded(h.t, 1)}
	h.send(m)
	return h.finish(in)
}

// The event comes after the timer has got its schedule: that is deleted, after the turn's commit, and never fires.
func TestCancelTimerDeletesSchedule(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Hour)
		if n := h.Cloud.Schedules.Count(); n != 1 {
			t.Fatalf("%d schedules after an hour, want the timer's", n)
		}
		h.raise(in, "e", 1)
		h.serveFor(time.Minute)
		if n := h.Cloud.Schedules.Count(); n != 0 {
			t.Errorf("%d schedules when it is cancelled", n)
		}
		h.Cloud.ResetCounts()
		h.serveFor(48 * time.Hour)
		if got := h.Cloud.Counts(); got["SQS.SendMessageBatch"] > 0 {
			t.Errorf("the cancelled timer fired: %v", got)
		}
		if end := h.endsAfter(in, 0); string(end.Output) != `"event"` {
			t.Errorf("ended with %s", end.Output)
		}
		h.checkRest()
	})
}

// A timer that is still in its queue has no schedule to delete; nor has one that is short.
func TestACancelledTimerWithoutAScheduleCostsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Minute)
		h.raise(in, "e", 1)
		h.serveFor(time.Minute)
		for _, op := range h.operations(0) {
			if op == "DeleteSchedule" {
				t.Error("a schedule was deleted that cannot be there")
			}
		}
		if end := h.endsAfter(in, 48*time.Hour); string(end.Output) != `"event"` {
			t.Errorf("ended with %s", end.Output)
		}
	})
}

// Interleaving: the timer fires, and its message is on its way, when the turn that cancels it commits. The message is dropped.
func TestCancelledTimerFiringLateIsDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.turn(0)
		h.raise(in, "e", 1)
		h.turn(0)
		h.send(provider.Message{Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, TimerID: 4})
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("it failed")
		}
		if end := h.endsAfter(in, time.Minute); string(end.Output) != `"event"` {
			t.Errorf("ended with %s", end.Output)
		}
		for _, e := range h.events(in) {
			if e.Kind == history.TimerFired {
				t.Error("a cancelled timer is recorded as fired")
			}
		}
	})
}

// Interleaving: the process dies between the commit that cancels a timer and the deletion of its schedule.
func TestR15ACrashBeforeTheScheduleIsDeleted(t *testing.T) {
	t.Parallel()
	intercept, crashed := crashOnce(false, func(c simaws.Call) bool { return c.Operation == "DeleteSchedule" })
	inBubble(t, simhub.Options{Intercept: intercept, Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Hour)
		h.raise(in, "e", 1)
		h.serveFor(10 * time.Minute)
		if n := h.Cloud.Schedules.Count(); n != 0 || !crashed.Load() {
			t.Errorf("%d schedules are left, crashed: %v", n, crashed.Load())
		}
		if end := h.endsAfter(in, time.Minute); string(end.Output) != `"event"` {
			t.Errorf("ended with %s", end.Output)
		}
	})
}

// Parents cancel children of one id that never began, again and again: what is left in the id's place does not grow for ever, and each
// parent is told. The first ones stay refused.
func TestR16TenThousandCancelsOfOneIDFitItsTombstone(t *testing.T) {
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
					t.Fatal("it is deleted")
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
				t.Errorf("%d answers", n)
			}
			past, _ := h.item("i#i-1", "i")["past"].(*ddbtypes.AttributeValueMemberSS)
			if past == nil || len(past.Value) != 256 {
				t.Fatalf("deleting: %v: it remembers %d starts", deleting, len(past.Value))
			}
			if deleting {
				if err := h.Provider.DeleteInstance(ctx, "i-1", false); err != nil {
					t.Fatal(err)
				}
			}
			for _, start := range []string{"01JEXECUTIONOFAPARENT:0", "01JEXECUTIONOFAPARENT:255"} {
				m := startMessage(h, "i-1", start)
				if _, err := h.Provider.CreateOrchestration(ctx, &provider.InboxMessage{Message: m}); !errors.Is(err, provider.ErrAlreadyExists) {
					t.Errorf("%s: %v", start, err)
				}
			}
		})
	}
}
