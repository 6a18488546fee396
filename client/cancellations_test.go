package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// at returns the event e with a time in milliseconds.
func at(ms int, e history.Event) history.Event {
	e.Time = instant(ms)
	return e
}

func instant(ms int) time.Time { return time.UnixMilli(int64(ms)).UTC() }

// everyEnd is the history of an execution with cancelled tasks of each kind and outcome.
var everyEnd = []history.Event{
	at(10, history.Event{Kind: history.ActivityScheduled, Name: "queued"}),                          // #2
	at(10, history.Event{Kind: history.ActivityScheduled, Name: "stopped"}),                         // #3
	at(10, history.Event{Kind: history.ActivityScheduled, Name: "late"}),                            // #4
	at(10, history.Event{Kind: history.ActivityScheduled, Name: "done"}),                            // #5
	at(10, history.Event{Kind: history.TimerCreated, Message: "payment window"}),                    // #6
	at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "child", InstanceID: "c7"}), // #7
	at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "child", InstanceID: "c8"}), // #8
	at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "child", InstanceID: "c9"}), // #9
	at(20, history.Event{Kind: history.ActivityCompleted, SourceEventID: 5}),
	at(30, history.Event{
		Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: "requested", Message: "wrong card",
		RequestedBy: "client",
	}),
	// #12
	at(40, history.Event{
		Kind: history.CancelRequested, Reason: "requested", Message: "withdrawn", RequestedBy: "client",
	}),
	at(40, history.Event{
		Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 2, Last: 4}},
		Reason: "requested", RequestedBy: "engine",
	}),
	at(40, history.Event{Kind: history.TimerCancelled, SourceEventID: 6, Reason: "requested"}),
	at(40, history.Event{
		Kind: history.SubOrchestrationCancelRequested, SourceEventID: 7, InstanceID: "c7", Reason: "parent_cancelled",
		RequestedBy: "engine",
	}),
	at(40, history.Event{
		Kind: history.SubOrchestrationCancelRequested, SourceEventID: 8, InstanceID: "c8", Reason: "parent_cancelled",
		RequestedBy: "engine",
	}),
	at(40, history.Event{
		Kind: history.SubOrchestrationCancelRequested, SourceEventID: 9, InstanceID: "c9", Reason: "parent_cancelled",
		RequestedBy: "engine",
	}),
	at(50, history.Event{Kind: history.CancelRequested, Reason: "requested", Message: "again", RequestedBy: "client"}),
	at(60, history.Event{Kind: history.ActivityCompleted, SourceEventID: 4}),
	at(60, history.Event{
		Kind: history.SubOrchestrationFailed, SourceEventID: 7, InstanceID: "c7",
		Error: &history.Failure{Type: history.TypeCancelled},
	}),
	at(60, history.Event{
		Kind: history.SubOrchestrationCancelFailed, SourceEventID: 8, InstanceID: "c8",
		Error: &history.Failure{Type: history.TypeEnded},
	}),
	at(61, history.Event{Kind: history.SubOrchestrationCompleted, SourceEventID: 8}),
	at(62, history.Event{
		Kind: history.SubOrchestrationCancelFailed, SourceEventID: 9, InstanceID: "c9",
		Error: &history.Failure{Type: history.TypeNotFound},
	}),
	at(63, history.Event{
		Kind: history.SubOrchestrationCancelFailed, SourceEventID: 8, InstanceID: "c8",
		Error: &history.Failure{Type: history.TypeEnded},
	}),
	at(70, history.Event{Kind: history.OrchestrationCancelled, Reason: "requested", Message: "withdrawn"}),
}

func TestCancellations_eachTargetAndOutcome_isReported(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", everyEnd...)
	p.SetActivityRecords("x1",
		provider.ActivityRecord{
			ActivityID: 3, SeenAt: instant(31), EndedAt: instant(35), CancelOutcome: provider.OutcomeStopped,
		},
		// this record does not report the end of the activity
		provider.ActivityRecord{ActivityID: 4, Details: []byte(`{}`), LastHeartbeatAt: instant(12)},
		provider.ActivityRecord{
			ActivityID: 5, SeenAt: instant(31), EndedAt: instant(35), CancelOutcome: provider.OutcomeStopped,
		},
	)
	in, err := p.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.CancellationsPage(t.Context(), "one", "", client.Paging{})
	if err != nil {
		t.Fatal(err)
	}
	child := func(id int64, name string) client.Cancellation {
		return client.Cancellation{
			Target: client.TargetSubOrchestration, ID: id, Name: "child", ChildID: name, Reason: "parent_cancelled",
			RequestedBy: "engine", DecidedAt: instant(40),
		}
	}
	c7, c8, c9 := child(7, "c7"), child(8, "c8"), child(9, "c9")
	c7.End, c7.EndedAt = client.OutcomeCancelled, instant(60)
	c8.End, c8.EndedAt, c8.Error = client.OutcomeCompleted, instant(61), &history.Failure{Type: history.TypeEnded}
	c9.End, c9.EndedAt, c9.Error = client.OutcomeNotCancellable, instant(62),
		&history.Failure{Type: history.TypeNotFound}
	activity := client.Cancellation{
		Target: client.TargetActivity, Reason: "requested", RequestedBy: "engine", DecidedAt: instant(40),
	}
	queued, late := activity, activity
	queued.ID, queued.Name = 2, "queued"
	late.ID, late.Name, late.End, late.EndedAt = 4, "late", client.OutcomeCompleted, instant(60)
	want := client.CancellationPage{
		InstanceID: "one", ExecutionID: "x1", StartedAt: in.CreatedAt,
		Page: client.Page[client.Cancellation]{Items: []client.Cancellation{
			{
				Target: client.TargetActivity, ID: 3, Name: "stopped", Reason: "requested", Message: "wrong card",
				RequestedBy: "client", DecidedAt: instant(30),
				SeenAt: instant(31), EndedAt: instant(35), End: client.OutcomeStopped,
			},
			{
				Target: client.TargetInstance, ID: 12, Name: "hello", Reason: "requested", Message: "withdrawn",
				RequestedBy: "client", DecidedAt: instant(40),
				EndedAt: instant(70), End: client.OutcomeCancelled,
			},
			queued, late,
			{
				Target: client.TargetTimer, ID: 6, Name: "payment window", Reason: "requested", DecidedAt: instant(40),
				EndedAt: instant(40), End: client.OutcomeTimerRemoved,
			},
			c7, c8, c9,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if all, err := client.Collect(c.Cancellations(t.Context(), "one", "")); err != nil || !cmp.Equal(all, got.Items) {
		t.Errorf("iterator: got %+v, error %v", all, err)
	}
}

// The history of a parent lacks the end of a child that ended later. The client reads this end from the instance of the
// child.
func TestCancellations_childEndedAfterItsParent_hasOutcome(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one",
		at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "hello", InstanceID: "cancelled"}), // #2
		at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "hello", InstanceID: "completed"}), // #3
		at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "hello", InstanceID: "running"}),   // #4
		at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "hello", InstanceID: "another's"}), // #5
		at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "hello", InstanceID: "missing"}),   // #6
		at(20, history.Event{
			Kind: history.SubOrchestrationCancelRequested, SourceEventIDs: []history.Range{{First: 2, Last: 6}},
			Reason: "orchestration_terminal_completed", RequestedBy: "engine",
		}),
		at(20, history.Event{Kind: history.OrchestrationCompleted}),
	)
	for id, end := range map[string]history.Event{
		"cancelled": at(90, history.Event{Kind: history.OrchestrationCancelled}),
		"completed": at(80, history.Event{Kind: history.OrchestrationCompleted}),
		"running":   at(30, history.Event{Kind: history.TurnStarted}),
		"another's": at(80, history.Event{Kind: history.OrchestrationCompleted}),
	} {
		mustStart(t, c, id)
		p.SetParent(id, history.Parent{
			InstanceID: "one", ExecutionID: map[bool]string{true: "x77", false: "x1"}[id == "another's"],
		})
		p.Append(id, end)
	}
	got, err := client.Collect(c.Cancellations(t.Context(), "one", ""))
	page, pageErr := c.CancellationsPage(t.Context(), "one", "", client.Paging{})
	if err = errors.Join(err, pageErr); err != nil || len(got) != 5 || !cmp.Equal(got, page.Items) {
		t.Fatalf("got %+v, %+v, error %v", got, page, err)
	}
	for i, want := range []client.CancelOutcome{client.OutcomeCancelled, client.OutcomeCompleted, "", "", ""} {
		if x := got[i]; x.End != want || (want != "") != x.EndedAt.After(x.DecidedAt) {
			t.Errorf("%s: got end %q at %v", x.ChildID, x.End, x.EndedAt)
		}
	}
}

func TestCancellations_pastExecution_hasItsOwn(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", at(10, scheduled), at(20, history.Event{
		Kind: history.ActivityCancelRequested, SourceEventID: 2, Reason: "orchestration_terminal_continued_as_new",
		RequestedBy: "engine",
	}), at(20, history.Event{Kind: history.OrchestrationContinuedAsNew}))
	if now, err := c.CancellationsPage(t.Context(), "one", "", client.Paging{}); err != nil || len(now.Items) != 0 ||
		now.ExecutionID != "x2" {
		t.Errorf("current execution: got %+v, error %v", now, err)
	}
	if past, err := client.Collect(c.Cancellations(t.Context(), "one", "x1")); err != nil || len(past) != 1 ||
		past[0].ID != 2 {
		t.Errorf("earlier execution: got %+v, error %v", past, err)
	}
}

func TestCancellations_missingInstanceOrFailingHub_returnsError(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", everyEnd...)
	for name, call := range map[string]struct{ instance, execution string }{
		"no instance": {"missing", ""}, "no execution": {"one", "x9"},
	} {
		if _, err := client.Collect(c.Cancellations(t.Context(), call.instance, call.execution)); !errors.Is(err,
			client.ErrNotFound) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := client.Collect(c.Cancellations(t.Context(), "", "")); err == nil {
		t.Error("empty ID: got no error")
	}
	down := errors.New("down")
	p.FailWith(down)
	if _, err := client.Collect(c.Cancellations(t.Context(), "one", "x1")); !hasCause(err, down) {
		t.Errorf("unavailable hub: got error %v", err)
	}
}
