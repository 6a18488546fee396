package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func due(ms int) *time.Time {
	t := instant(ms)
	return &t
}

// pendingText returns the pending items, one on each line.
func pendingText(p client.Pending) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:", p.Total)
	for _, x := range p.Items {
		fmt.Fprintf(&b, " %s#%d", x.Kind, x.ID)
		if x.Name != "" {
			b.WriteString("=" + x.Name)
		}
	}
	return b.String()
}

// mustPending returns the pending items of the instance "one".
func mustPending(t *testing.T, c *client.Client, limit int) client.Pending {
	t.Helper()
	p, err := c.Pending(t.Context(), "one", "", limit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPending_openTasksOfEachKind_areReported(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one",
		at(10, history.Event{Kind: history.TurnStarted}),
		at(10, history.Event{Kind: history.ActivityScheduled, Name: "charge", Queue: "payments"}),                 // #3
		at(10, history.Event{Kind: history.ActivityScheduled, Name: "pack"}),                                      // #4
		at(10, history.Event{Kind: history.TimerCreated, FireAt: due(9000), Message: "payment window"}),           // #5
		at(10, history.Event{Kind: history.TimerCreated, FireAt: due(20)}),                                        // #6
		at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "ship", InstanceID: "s", Attempt: 1}), // #7
		at(10, history.Event{Kind: history.ExternalEventSubscribed, Name: "approved"}),                            // #8
		at(10, history.Event{Kind: history.ExternalEventSubscribed, Name: "approved"}),                            // #9
		at(10, history.Event{Kind: history.DetachedOrchestrationScheduled, Name: "mail", InstanceID: "m"}),
		at(20, history.Event{Kind: history.TurnStarted}),
		at(20, history.Event{Kind: history.ActivityCompleted, SourceEventID: 4}),
		at(20, history.Event{Kind: history.TimerFired, SourceEventID: 6}),
		at(20, history.Event{Kind: history.ExternalEventRaised, Name: "approved"}),
		at(20, history.Event{Kind: history.ExternalEventRaised, Name: "early"}),
		at(20, history.Event{Kind: history.ActivityScheduled, Name: "weigh"}),           // #16
		at(20, history.Event{Kind: history.ExternalEventSubscribed, Name: "early"}),     // has arrived
		at(20, history.Event{Kind: history.ActivityScheduled, Name: "given up"}),        // #18
		at(20, history.Event{Kind: history.ActivityCancelRequested, SourceEventID: 18}), // settles #18
	)
	// this activity has ended
	p.SetRetries("x1", provider.ActivityRetry{
		ActivityID: 4, Attempt: 9, At: instant(1), FailedAt: instant(1), Error: &history.Failure{Type: "E"},
	})
	p.SetRetries("x1", provider.ActivityRetry{
		ActivityID: 16, Attempt: 3, At: instant(5000), FailedAt: instant(1000),
		Error: &history.Failure{Type: "ScaleError", Message: "stuck"},
	})
	p.SetActivityRecords("x1",
		provider.ActivityRecord{ActivityID: 3, LastHeartbeatAt: instant(800), Details: []byte(`7`)})
	p.SetWorkers(map[string]time.Time{"payments": began})
	got := mustPending(t, c, 0)
	want := client.Pending{ReadAt: began, Total: 5, Items: []client.PendingItem{
		{
			Kind: client.PendingActivity, ID: 16, Name: "weigh", ScheduledAt: instant(20), Attempt: 3,
			LastError: &history.Failure{Type: "ScaleError", Message: "stuck"},
			FailedAt:  instant(1000), NextAttemptAt: instant(5000),
		},
		{
			Kind: client.PendingActivity, ID: 3, Name: "charge", Queue: "payments", ScheduledAt: instant(10),
			Attempt: 1, LastHeartbeatAt: instant(800),
		},
		{Kind: client.PendingTimer, ID: 5, Name: "payment window", ScheduledAt: instant(10), DueAt: instant(9000)},
		{
			Kind: client.PendingSubOrchestration, ID: 7, Name: "ship", InstanceID: "s", ScheduledAt: instant(10),
			Attempt: 1,
		},
		{Kind: client.PendingExternalEvent, ID: 9, Name: "approved", ScheduledAt: instant(10)},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	p.Append("one", completed("1"))
	if got := pendingText(mustPending(t, c, 0)); got != "0:" {
		t.Errorf("ended execution: got %s", got)
	}
}

// After a failure of a child, the engine waits for a timer. The next attempt is another instance.
func TestPending_failedSubOrchestration_reportsNextAttempt(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	policy := &history.RetryPolicy{MaxAttempts: 2, InitialIntervalMs: 1000}
	no := &history.Failure{Type: "E", Message: strings.Repeat("x", 5000), Cause: &history.Failure{Type: "F"}}
	p.Append("one",
		// #2
		at(10, history.Event{
			Kind: history.SubOrchestrationScheduled, Name: "ship", InstanceID: "s", Attempt: 1, Retry: policy,
		}),
		at(20, history.Event{Kind: history.TurnStarted}),
		at(20, history.Event{Kind: history.SubOrchestrationFailed, SourceEventID: 2, Error: no}),
		at(20, history.Event{Kind: history.TimerCreated, FireAt: due(1020)}), // #5
	)
	short := &history.Failure{Type: "E", Message: no.Message[:1024] + "…", Cause: &history.Failure{Type: "F"}}
	item := client.PendingItem{
		Kind: client.PendingSubOrchestration, ID: 5, Name: "ship", InstanceID: "s", ScheduledAt: instant(20),
		Attempt: 2, MaxAttempts: 2, LastError: short, FailedAt: instant(20), NextAttemptAt: instant(1020),
	}
	if diff := cmp.Diff([]client.PendingItem{item}, mustPending(t, c, 0).Items); diff != "" {
		t.Errorf("before the second attempt: mismatch (-want +got):\n%s", diff)
	}
	p.Append("one",
		at(1020, history.Event{Kind: history.TurnStarted}),
		at(1020, history.Event{Kind: history.TimerFired, SourceEventID: 5}),
		// #8
		at(1020, history.Event{
			Kind: history.SubOrchestrationScheduled, Name: "ship", InstanceID: "s~2", Attempt: 2, Retry: policy,
		}),
	)
	item.ID, item.InstanceID, item.ScheduledAt = 8, "s~2", instant(1020)
	if diff := cmp.Diff([]client.PendingItem{item}, mustPending(t, c, 0).Items); diff != "" {
		t.Errorf("during the second attempt: mismatch (-want +got):\n%s", diff)
	}
	p.Append("one", // the last attempt; the next timer is a timer of the orchestration
		at(2000, history.Event{Kind: history.TurnStarted}),
		at(2000, history.Event{Kind: history.SubOrchestrationFailed, SourceEventID: 8, Error: no}),
		at(2000, history.Event{Kind: history.TimerCreated, FireAt: due(9000)}),
	)
	if got := pendingText(mustPending(t, c, 0)); got != "1: timer#11" {
		t.Error(got)
	}
}

// A task with a parked input is not pending, even before a turn consumes the input. The turn that consumes the input
// records the input again.
func TestPending_blockedInstance_omitsParkedInputsAndReportsBuilds(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one",
		at(10, history.Event{Kind: history.ActivityScheduled, Name: "charge"}),   // #2
		at(10, history.Event{Kind: history.ActivityScheduled, Name: "pack"}),     // #3
		at(10, history.Event{Kind: history.ActivityScheduled, Name: "weigh"}),    // #4
		at(10, history.Event{Kind: history.ExternalEventSubscribed, Name: "go"}), // #5
		at(10, history.Event{Kind: history.ExternalEventSubscribed, Name: "go"}), // #6
		at(20, history.Event{Kind: history.InputsParked, BuildID: "b-1", Inputs: []history.Event{
			{Kind: history.ActivityCompleted, SourceEventID: 2},
			{Kind: history.ExternalEventRaised, Name: "go"},
			{Kind: history.ActivityCancelRequested, SourceEventID: 3, RequestedBy: "client"},
		}}),
	)
	blocked := mustPending(t, c, 0)
	if got := pendingText(blocked); got != "3: activity#3=pack activity#4=weigh external_event#6=go" {
		t.Errorf("blocked: got %s", got)
	}
	want := &client.BlockedState{Since: instant(20), BuildID: "b-1", ParkedInputs: 3}
	if diff := cmp.Diff(want, blocked.Blocked); diff != "" {
		t.Errorf("builds before the first turn: mismatch (-want +got):\n%s", diff)
	}
	p.Append("one", // a turn that consumes two of the three inputs
		at(30, history.Event{Kind: history.TurnStarted, ParkedConsumed: 2, BuildID: "b-2"}),
		at(30, history.Event{Kind: history.ActivityCompleted, SourceEventID: 2}),
		at(30, history.Event{Kind: history.ExternalEventRaised, Name: "go"}),
	)
	running := mustPending(t, c, 0)
	if got := pendingText(running); got != "3: activity#3=pack activity#4=weigh external_event#6=go" {
		t.Errorf("after a turn: got %s", got)
	}
	if running.Blocked != nil {
		t.Errorf("after a turn: got blocked %+v", running.Blocked)
	}
	p.Append("one",
		at(40, history.Event{Kind: history.InputsParked, BuildID: "b-3"}),
		at(50, history.Event{Kind: history.InputsParked, BuildID: "b-4", Inputs: []history.Event{
			{Kind: history.ExternalEventRaised, Name: "go"},
		}}),
	)
	want = &client.BlockedState{Since: instant(40), BuildID: "b-4", LastTurnBuildID: "b-2", ParkedInputs: 2}
	if diff := cmp.Diff(want, mustPending(t, c, 0).Blocked); diff != "" {
		t.Errorf("builds after two of them blocked: mismatch (-want +got):\n%s", diff)
	}
}

// The latest report decides whether an activity is unregistered.
func TestPending_activityReports_latestDecidesWhetherItIsUnregistered(t *testing.T) {
	t.Parallel()
	retry := provider.ActivityRetry{
		ActivityID: 2, Attempt: 2, At: instant(60), FailedAt: instant(50), Error: &history.Failure{Type: "E"},
	}
	for name, tt := range map[string]struct {
		left  provider.ActivityRecord
		retry bool
		known bool
	}{
		"no record": {provider.ActivityRecord{}, false, true},
		"unknown": {
			provider.ActivityRecord{UnknownAt: instant(40), UnknownBuild: "b-1"}, false, false,
		},
		"started later by a worker": {
			provider.ActivityRecord{UnknownAt: instant(40), UnknownBuild: "b-1", BegunAt: instant(45)}, false, true,
		},
		"started earlier by a worker": {
			provider.ActivityRecord{UnknownAt: instant(47), UnknownBuild: "b-1", BegunAt: instant(45)}, false, false,
		},
		"later heartbeat": {
			provider.ActivityRecord{UnknownAt: instant(40), UnknownBuild: "b-1", LastHeartbeatAt: instant(45)},
			false,
			true,
		},
		"later failed attempt": {
			provider.ActivityRecord{UnknownAt: instant(40), UnknownBuild: "b-1"}, true, true,
		},
		"next attempt is unknown": {
			provider.ActivityRecord{UnknownAt: instant(70), UnknownBuild: "b-1"}, true, false,
		},
		"earlier heartbeat": {
			provider.ActivityRecord{UnknownAt: instant(40), UnknownBuild: "b-1", LastHeartbeatAt: instant(5)},
			false,
			false,
		},
	} {
		c, p := setup(t)
		mustStart(t, c, "one")
		p.Append("one", at(1, history.Event{Kind: history.ActivityScheduled, Name: "charge"}))
		tt.left.ActivityID = 2
		p.SetActivityRecords("x1", tt.left)
		if tt.retry {
			p.SetRetries("x1", retry)
		}
		x := mustPending(t, c, 0).Items[0]
		if known := x.UnregisteredAt.IsZero() && x.UnregisteredBuildID == ""; known != tt.known ||
			!known && (x.UnregisteredAt != tt.left.UnknownAt || x.UnregisteredBuildID != "b-1") {
			t.Errorf("%s: got %+v", name, x)
		}
	}
}

func TestPending_moreTasksThanLimit_areBounded(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	for range 300 {
		p.Append("one", at(1, history.Event{Kind: history.ActivityScheduled, Name: "charge"}))
	}
	for id := int64(150); id < 290; id += 20 {
		p.SetRetries("x1", provider.ActivityRetry{
			ActivityID: id, Attempt: 2, At: instant(60), FailedAt: instant(50), Error: &history.Failure{Type: "E"},
		})
	}
	if got := pendingText(mustPending(t, c,
		3)); got != "300: activity#150=charge activity#170=charge activity#190=charge" {
		t.Errorf("limit 3: got %s", got)
	}
	all := mustPending(t, c, 0)
	if len(all.Items) != 100 || all.Items[6].ID != 270 || all.Items[7].ID != 2 || all.Items[7].Attempt != 1 ||
		all.Items[99].ID != 94 {
		t.Errorf("limit 100: got %s", pendingText(all))
	}
	var field *provider.FieldError
	if _, err := c.Pending(t.Context(), "one", "", 1001); !errors.As(err, &field) || field.Field != "limit" {
		t.Errorf("limit 1001: got error %v", err)
	}
	if _, err := c.Pending(t.Context(), "missing", "", 1); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("unknown instance: got error %v", err)
	}
}

// Retry records remain after their activities have ended, and the client reads a limited number of these records. The
// attempt of an activity whose record was not read is unknown.
func TestPending_tooManyRetryRecords_attemptIsUnknown(t *testing.T) {
	t.Parallel()
	localOnly(t, "the API limits the time of the read")
	c, p := setup(t)
	mustStart(t, c, "one")
	const over = 20_001
	events := make([]history.Event, 0, over+2)
	for range over {
		events = append(events, at(1, history.Event{Kind: history.ActivityScheduled, Name: "charge"}))
	}
	events = append(events, at(2, history.Event{
		Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 3, Last: over + 1}},
	}),
		at(3, history.Event{Kind: history.ActivityScheduled, Name: "last"}))
	p.Append("one", events...)
	retries := make([]provider.ActivityRetry, over)
	for i := range retries {
		retries[i] = provider.ActivityRetry{ActivityID: int64(i) + 3, Attempt: 2, Error: &history.Failure{}}
	}
	p.SetRetries("x1", retries...)
	got := mustPending(t, c, 0)
	if pendingText(got) != "2: activity#2=charge activity#20004=last" || got.Items[0].Attempt != 1 ||
		got.Items[1].Attempt != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestPending_corruptHistory_returnsErrCorrupt(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Damage("x1", fmt.Errorf("h#3: %w", provider.ErrCorrupt))
	if _, err := c.Pending(t.Context(), "one", "", 0); !errors.Is(err, provider.ErrCorrupt) {
		t.Errorf("got error %v", err)
	}
	if s, err := c.Status(t.Context(), "one"); err != nil || s.Status != client.StatusPending {
		t.Errorf("got %+v, error %v", s, err)
	}
}

// Pending reports NoWorker for an activity that has been due for some time if its queue has no recent worker report.
// Pending does not report NoWorker for an activity that is not due, has a recent heartbeat, or is unregistered.
func TestPending_queueWithoutWorker_reportsNoWorker(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return began.Add(-d) }
	for name, tt := range map[string]struct {
		since  time.Duration
		seen   map[string]time.Time
		left   provider.ActivityRecord
		retry  time.Duration // the time until the next attempt
		missed bool
	}{
		"no worker report": {
			since: 5 * time.Minute, seen: map[string]time.Time{"other": began}, missed: true,
		},
		"worker report before the activity": {
			since: 5 * time.Minute, seen: map[string]time.Time{"payments": ago(3 * time.Hour)}, missed: true,
		},
		"worker report of eleven minutes ago": {
			since: time.Hour, seen: map[string]time.Time{"payments": ago(11 * time.Minute)}, missed: true,
		},
		"worker report of nine minutes ago": {
			since: time.Hour, seen: map[string]time.Time{"payments": ago(9 * time.Minute)},
		},
		"just sent": {since: 50 * time.Second, seen: map[string]time.Time{}},
		"heartbeat": {
			since: time.Hour, seen: map[string]time.Time{},
			left: provider.ActivityRecord{LastHeartbeatAt: ago(30 * time.Second)},
		},
		"heartbeat an hour ago": {
			since: 2 * time.Hour, seen: map[string]time.Time{},
			left: provider.ActivityRecord{LastHeartbeatAt: ago(time.Hour)}, missed: true,
		},
		"activity is not registered": {
			since: time.Hour, seen: map[string]time.Time{},
			left: provider.ActivityRecord{UnknownAt: ago(time.Minute), UnknownBuild: "b"},
		},
		"next attempt is not due": {since: time.Hour, seen: map[string]time.Time{}, retry: time.Minute},
		"next attempt was due five minutes ago": {
			since: time.Hour, seen: map[string]time.Time{}, retry: -5 * time.Minute, missed: true,
		},
		"next attempt has just become due": {since: time.Hour, seen: map[string]time.Time{}, retry: -5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := setup(t)
			mustStart(t, c, "one")
			scheduled := history.Event{
				Kind: history.ActivityScheduled, Name: "charge", Queue: "payments", Time: ago(tt.since),
			}
			p.Append("one", history.Event{Kind: history.TurnStarted, Time: ago(tt.since)}, scheduled)
			p.SetWorkers(tt.seen)
			tt.left.ActivityID = 3
			p.SetActivityRecords("x1", tt.left)
			if tt.retry != 0 {
				p.SetRetries("x1", provider.ActivityRetry{
					ActivityID: 3, Attempt: 2, At: began.Add(tt.retry), FailedAt: ago(20 * time.Minute),
					Error: &history.Failure{Type: "E"},
				})
			}
			got := mustPending(t, c, 0)
			if x := got.Items[0]; x.NoWorker != tt.missed || x.NoWorker && !x.WorkerSeenAt.Equal(tt.seen["payments"]) {
				t.Errorf("got %+v, want NoWorker %v", x, tt.missed)
			}
		})
	}
}
