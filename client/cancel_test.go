package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

var (
	cancelRequested = history.Event{
		Kind: history.CancelRequested, Reason: "requested", Message: "withdrawn",
		RequestedBy: history.RequestedByClient,
	}
	cancelled = history.Event{Kind: history.OrchestrationCancelled, Reason: "requested", Message: "withdrawn"}
	scheduled = history.Event{Kind: history.ActivityScheduled, Name: "charge"}
)

// An instance that is Cancelling has not ended and can be cancelled again.
func TestCancel_runningOrCancellingInstance_sendsMessage(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	for range 2 {
		if err := c.Cancel(t.Context(), "one", "withdrawn"); err != nil {
			t.Fatal(err)
		}
		p.Append("one", cancelRequested)
	}
	in, err := p.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	m := provider.Message{
		Kind: provider.MessageCancel, InstanceID: "one", StartID: in.StartID, Reason: "requested",
		RequestedBy: "client", Text: "withdrawn",
	}
	if diff := cmp.Diff([]provider.Message{m, m}, p.Sent()); diff != "" {
		t.Errorf("sent messages (-want +got):\n%s", diff)
	}
}

func TestCancel_invalidArgumentOrEndedInstance_isRejected(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	for _, id := range []string{"one", "over", "cancelled"} {
		mustStart(t, c, id)
	}
	p.Append("one", scheduled)
	p.Append("over", completed("1"))
	p.Append("cancelled", cancelRequested, cancelled)
	for field, err := range map[string]error{
		"message":      c.Cancel(t.Context(), "one", strings.Repeat("x", 1025)),
		"message ":     c.CancelActivity(t.Context(), "one", 2, strings.Repeat("x", 1025)),
		"instanceId":   c.Cancel(t.Context(), "a\n", ""),
		"instanceId ":  c.CancelActivity(t.Context(), "", 2, ""),
		"activityId":   c.CancelActivity(t.Context(), "one", 0, ""),
		"activityId ":  c.CancelActivity(t.Context(), "one", -1, ""),
		"activityId  ": c.CancelActivity(t.Context(), "missing", -1, ""),
	} {
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != strings.TrimSpace(field) {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	for id, want := range map[string]error{
		"missing": client.ErrNotFound, "over": client.ErrEnded, "cancelled": client.ErrEnded,
	} {
		if err := c.Cancel(t.Context(), id, ""); !errors.Is(err, want) {
			t.Errorf("cancel %s: got error %v", id, err)
		}
	}
	if sent := p.Sent(); len(sent) > 0 {
		t.Errorf("got messages %+v, want none", sent)
	}
}

// of returns an event of the activity of event 3.
func of(k history.Kind) history.Event { return history.Event{Kind: k, SourceEventID: 3} }

func parked(inputs ...history.Event) history.Event {
	return history.Event{Kind: history.InputsParked, Inputs: inputs}
}

// Each history continues after OrchestrationStarted, TurnStarted and the ActivityScheduled of event 3.
func TestCancelActivity_onlyUnsettledActivity_sendsMessage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		then []history.Event
		id   int64
		want error // nil: the message is sent
	}{
		"pending or running":         {nil, 3, nil},
		"instance is ending":         {[]history.Event{cancelRequested}, 3, nil},
		"retry is due":               {[]history.Event{of(history.ActivityRetryScheduled)}, 3, nil},
		"another activity has ended": {[]history.Event{scheduled, of(history.ActivityCompleted)}, 4, nil},
		"another activity is parked": {[]history.Event{scheduled, parked(of(history.ActivityCompleted))}, 4, nil},

		"completed":            {[]history.Event{of(history.ActivityCompleted)}, 3, client.ErrNotCancellable},
		"failed":               {[]history.Event{of(history.ActivityFailed)}, 3, client.ErrNotCancellable},
		"send failed":          {[]history.Event{of(history.OutputFailed)}, 3, client.ErrNotCancellable},
		"cancelled":            {[]history.Event{of(history.ActivityCancelRequested)}, 3, client.ErrNotCancellable},
		"completion is parked": {[]history.Event{parked(of(history.ActivityCompleted))}, 3, client.ErrNotCancellable},
		"instance completed":   {[]history.Event{completed("1")}, 3, client.ErrNotCancellable},
		"instance terminated":  {[]history.Event{{Kind: history.OrchestrationTerminated}}, 3, client.ErrNotCancellable},
		"cancelled with others": {
			[]history.Event{
				scheduled,
				{Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 3, Last: 4}}},
			}, 3, client.ErrNotCancellable,
		},

		"after the last event":  {nil, 4, client.ErrActivityNotFound},
		"another kind of event": {nil, 2, client.ErrActivityNotFound},
		"a timer":               {[]history.Event{{Kind: history.TimerCreated}}, 4, client.ErrActivityNotFound},
		"completed instance":    {[]history.Event{completed("1")}, 5, client.ErrActivityNotFound},
		"earlier execution": {
			[]history.Event{{Kind: history.OrchestrationContinuedAsNew}}, 3, client.ErrActivityNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := setup(t)
			mustStart(t, c, "one")
			p.Append("one", append([]history.Event{{Kind: history.TurnStarted}, scheduled}, tt.then...)...)
			if err := c.CancelActivity(t.Context(), "one", tt.id, "enough"); !errors.Is(err, tt.want) {
				t.Errorf("CancelActivity: got %v, want %v", err, tt.want)
			}
			var want []provider.Message
			if tt.want == nil {
				want = []provider.Message{
					{
						Kind: provider.MessageCancelActivity, InstanceID: "one", ExecutionID: "x1", ActivityID: tt.id,
						Text: "enough",
					},
				}
			}
			if diff := cmp.Diff(want, p.Sent()); diff != "" {
				t.Errorf("sent messages (-want +got):\n%s", diff)
			}
		})
	}
}

// The message names the current execution and applies only to that execution.
func TestCancelActivity_severalExecutions_namesTheCurrentOne(t *testing.T) {
	t.Parallel()
	c, p := continued(t)
	p.Append("one", scheduled)
	if err := c.CancelActivity(t.Context(), "one", 2, ""); err != nil {
		t.Fatal(err)
	}
	if sent := p.Sent(); len(sent) != 1 || sent[0].ExecutionID != "x3" || sent[0].ActivityID != 2 {
		t.Errorf("got messages %+v", sent)
	}
}

// continuing is a provider whose instance continues as new after a read.
type continuing struct {
	provider.Provider

	runUntilIdle func()
}

func (p continuing) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	defer p.runUntilIdle()
	return p.Provider.ReadInstance(ctx, instanceID)
}

// The instance continues as new after the client reads the execution. Event 2 of the next execution is a different
// activity.
func TestCancelActivity_executionContinuesAsNewMeanwhile_isNotCancellable(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", scheduled)
	c = connect(continuing{p, func() {
		p.Append("one", history.Event{Kind: history.OrchestrationContinuedAsNew}, scheduled)
	}})
	if err := c.CancelActivity(t.Context(), "one", 2, ""); !errors.Is(err, client.ErrNotCancellable) ||
		len(p.Sent()) > 0 {
		t.Errorf("CancelActivity: got error %v, messages %+v", err, p.Sent())
	}
}

func TestCancelActivity_missingInstanceOrActivity_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	if err := c.CancelActivity(t.Context(), "missing", 2, ""); !errors.Is(err, client.ErrNotFound) ||
		errors.Is(err, client.ErrActivityNotFound) {
		t.Errorf("unknown instance: got error %v", err)
	}
	if err := c.CancelActivity(t.Context(), "one", 2, ""); !errors.Is(err, client.ErrNotFound) ||
		!errors.Is(err, client.ErrActivityNotFound) {
		t.Errorf("unknown activity: got error %v", err)
	}
	down := errors.New("down")
	p.FailWith(down)
	if err := c.CancelActivity(t.Context(), "one", 2, ""); !hasCause(err, down) {
		t.Errorf("unavailable hub: got error %v", err)
	}
}

func TestStatus_cancelledInstance_hasStatusAndFailure(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", cancelRequested, history.Event{Kind: history.TurnStarted})
	if s, err := c.Status(t.Context(), "one"); err != nil || s.Status != client.StatusCancelling ||
		s.Status.Terminal() || s.Failure != nil {
		t.Errorf("during the cleanup: got %+v, error %v", s, err)
	}
	p.Append("one", cancelled)
	s, err := c.Wait(t.Context(), "one")
	want := &history.Failure{Type: history.TypeCancelled, Reason: "requested", Message: "withdrawn"}
	if diff := cmp.Diff(want, s.Failure); err != nil || s.Status != client.StatusCancelled || diff != "" {
		t.Errorf("Wait: got %+v, error %v; failure (-want +got):\n%s", s, err, diff)
	}
	_, err = client.Result[string](s)
	if e, ok := errors.AsType[*perdure.CancelledError](err); !ok || *e != (perdure.CancelledError{
		Reason: perdure.ReasonRequested, Message: "withdrawn",
	}) {
		t.Errorf("Result: got error %v", err)
	}
	if e, ok := errors.AsType[*client.OrchestrationError](err); !ok || e.InstanceID != "one" ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("Result: got error %v", err)
	}
	if want := `orchestration "hello" (instance "one"): cancelled (requested): withdrawn`; err.Error() != want {
		t.Errorf("got %s\nwant %s", err, want)
	}
}

func TestList_filterByEachStatus_returnsMatchingInstances(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	at := func(e history.Event) history.Event {
		e.Time = began.Add(time.Second)
		return e
	}
	for id, events := range map[string][]history.Event{
		"Pending": nil, "Running": {{Kind: history.TurnStarted}}, "Completed": {completed("1")},
		"Failed":     {{Kind: history.OrchestrationFailed}},
		"Cancelling": {at(cancelRequested)}, "Cancelled": {at(cancelRequested), at(cancelled)},
		"Terminated": {{Kind: history.OrchestrationTerminated}},
	} {
		mustStart(t, c, id)
		p.Append(id, events...)
	}
	id := func(s client.Status) string { return s.InstanceID }
	for _, s := range []client.RuntimeStatus{
		client.StatusPending, client.StatusRunning, client.StatusCompleted, client.StatusFailed,
		client.StatusCancelling, client.StatusCancelled, client.StatusTerminated,
	} {
		if got := ids(t, c.List(t.Context(), client.ListQuery{Status: s}), id); got != string(s)+" " {
			t.Errorf("%s: got %s", s, got)
		}
	}
	if got := ids(t, c.List(t.Context(), client.ListQuery{Status: client.StatusBlocked}), id); got != "" {
		t.Errorf("blocked: got %s", got)
	}
}
