package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/schedule"
)

// scenario uses one feature. begin runs the instance until the instance waits for its event or for the feature. finish
// runs the instance to its end, and checks the effect of the feature.
type scenario struct {
	instance string // default: firstID
	codecs   []perdure.Codec
	inBucket bool // the code reads payloads of the payload store
	begin    func(d *driver)
	finish   func(d *driver)
}

// id returns the ID of the instance whose history shows the feature.
func (s *scenario) id() string { return cmp.Or(s.instance, firstID) }

func begins(name, input string) func(d *driver) {
	return func(d *driver) { d.t.Helper(); d.start(firstID, name, input) }
}

var codecScenario = &scenario{
	codecs: []perdure.Codec{turned{}},
	begin:  begins("plain", "secret"),
	finish: func(d *driver) {
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "did secret now")
	},
}

var largeScenario = &scenario{
	inBucket: true,
	begin:    begins("plain", "large"),
	finish: func(d *driver) {
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, strings.Repeat("x", 300<<10)+" now")
	},
}

var exclusiveScenario = &scenario{
	begin: func(d *driver) {
		d.start(firstID, "alone", "alone")
		d.start(secondID, "alone", "alone")
	},
	finish: func(d *driver) {
		d.pass(5 * time.Minute)
		for _, id := range []string{firstID, secondID} {
			d.raiseGo(id, "now")
			d.wantOutput(id, "did alone now")
		}
		if d.state.most != 1 {
			d.t.Errorf("%d activities with one exclusive key ran at a time", d.state.most)
		}
	},
}

var inlineScenario = &scenario{
	begin: begins("inline", "tariff"),
	finish: func(d *driver) {
		if e := d.event(firstID, history.ActivityScheduled); !e.Inline {
			d.t.Errorf("not inline: %+v", e)
		}
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "did tariff now")
	},
}

var restartScenario = &scenario{
	begin: begins("rounds", "first"),
	finish: func(d *driver) {
		d.raiseGo(firstID, "on")
		if s := d.wantStatus(firstID, client.StatusRunning); s.ExecutionNumber != 2 {
			d.t.Errorf("execution %d, want 2", s.ExecutionNumber)
		}
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "did second now")
	},
}

var pauseScenario = &scenario{
	begin: func(d *driver) {
		d.start(firstID, "plain", "work")
		d.check(d.sdk.Pause(d.t.Context(), firstID, "audit"))
		d.pass(10 * time.Second)
	},
	finish: func(d *driver) {
		d.raiseGo(firstID, "now")
		if s := d.wantStatus(firstID, client.StatusPaused); s.Paused == nil || s.Paused.Message != "audit" {
			d.t.Errorf("paused: %+v", s.Paused)
		}
		d.check(d.sdk.Resume(d.t.Context(), firstID, "done"))
		d.pass(10 * time.Second)
		d.wantOutput(firstID, "did work now")
	},
}

// sendUpdate sends the update. A repeated call waits for the same handler.
func sendUpdate(d *driver) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	return d.sdk.Update(ctx, firstID, "address", "Main St", client.WithUpdateID("u1"))
}

var updateScenario = &scenario{
	begin: func(d *driver) {
		d.start(firstID, "parcel", "Old St")
		_, _ = sendUpdate(d) // the activity of the update may be lost
	},
	finish: func(d *driver) {
		if got, err := sendUpdate(d); err != nil || string(got) != `"did Main St"` {
			d.t.Errorf("update: %s, %v", got, err)
		}
		_, err := d.sdk.Update(d.t.Context(), firstID, "address", "")
		if e, ok := errors.AsType[*client.UpdateError](err); !ok || e.Code != client.UpdateRejected {
			d.t.Errorf("update without an address: %v", err)
		}
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "Main St")
	},
}

var tokenScenario = &scenario{
	begin: begins("plain", "token"),
	finish: func(d *driver) {
		d.check(d.sdk.CompleteActivity(d.t.Context(), d.state.token, "carried"))
		d.pass(10 * time.Second)
		err := d.sdk.CompleteActivity(d.t.Context(), d.state.token, "again")
		if e, ok := errors.AsType[*client.TokenError](err); !ok {
			d.t.Errorf("completed twice: %v, %v", err, e)
		}
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "carried now")
		if n := d.state.runs("token"); n != 1 {
			d.t.Errorf("the pending activity ran %d times", n)
		}
	},
}

// The instances of the schedule. Virtual time starts at midnight of January 1, 2000.
const (
	scheduleID       = "nightly"
	scheduleInstance = "schedule:nightly"
	firstRun         = "nightly@2000-01-01T02:00:00Z"
	secondRun        = "nightly@2000-01-02T02:00:00Z"
)

var scheduleScenario = &scenario{
	instance: firstRun,
	begin: func(d *driver) {
		d.check(d.sdk.Schedules().Put(d.t.Context(), schedule.Schedule{
			ID: scheduleID, Orchestration: "plain", Input: json.RawMessage(`"report"`), Expression: "0 2 * * *",
		}))
		d.pass(2*time.Hour + time.Minute)
	},
	finish: func(d *driver) {
		d.raiseGo(firstRun, "now")
		d.wantOutput(firstRun, "did report now")
		d.pass(24 * time.Hour)
		d.wantStatus(secondRun, client.StatusRunning)
		s, err := d.sdk.Schedules().Get(d.t.Context(), scheduleID)
		d.check(err)
		if s.Started != 2 {
			d.t.Errorf("%d runs started, want 2", s.Started)
		}
	},
}

var retentionScenario = &scenario{
	begin: begins("kept", "work"),
	finish: func(d *driver) {
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "did work now")
		d.pass(72 * time.Hour)
		if s, err := d.sdk.Status(d.t.Context(), firstID); !errors.Is(err, client.ErrNotFound) {
			d.t.Errorf("after the retention: %s, %v", s.Status, err)
		}
	},
}

var versionScenario = &scenario{
	begin: func(d *driver) {
		d.start(secondID, "versioned", "work", client.WithVersion("0"))
		d.start(firstID, "versioned", "work")
	},
	finish: func(d *driver) {
		for id, output := range map[string]string{firstID: "gift: did work now", secondID: "did work now"} {
			d.raiseGo(id, "now")
			d.wantOutput(id, output)
		}
	},
}

// refill calls the entity. A repeated call waits for the same operation.
func refill(d *driver) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	return d.sdk.CallEntity(ctx, "stock", "tea", "refill", 5, client.WithUpdateID("u1"))
}

var entityScenario = &scenario{
	instance: "@stock@tea",
	begin:    func(d *driver) { _, _ = refill(d) },
	finish: func(d *driver) {
		if got, err := refill(d); err != nil || string(got) != "5" {
			d.t.Errorf("refill: %s, %v", got, err)
		}
		if got, err := d.sdk.EntityState(d.t.Context(), "stock", "tea"); err != nil || string(got) != "5" {
			d.t.Errorf("state: %s, %v", got, err)
		}
	},
}

var cancelScenario = &scenario{
	begin: func(d *driver) {
		d.start(firstID, "cancelled", "slow")
		d.check(d.sdk.Cancel(client.ContextWithCaller(d.t.Context(), "ann"), firstID, "wrong file"))
		d.pass(10 * time.Second)
	},
	finish: func(d *driver) {
		d.wantStatus(firstID, client.StatusCancelling)
		d.raiseGo(firstID, "now")
		s := d.wantStatus(firstID, client.StatusCancelled)
		if f := s.Failure; f == nil || f.Message != "wrong file" || f.Reason != string(perdure.ReasonRequested) {
			d.t.Errorf("cancelled: %+v", s.Failure)
		}
		all, err := client.Collect(d.sdk.Cancellations(d.t.Context(), firstID, ""))
		d.check(err)
		if len(all) != 2 || all[1].Name != stepActivity || all[1].End != client.OutcomeStopped ||
			all[1].SeenAt.IsZero() {
			d.t.Errorf("cancellations: %+v", all)
		}
	},
}

var queryScenario = &scenario{
	begin: begins("counted", "book"),
	finish: func(d *driver) {
		if got, err := d.sdk.Query(d.t.Context(), firstID, "count", "book"); err != nil || string(got) != "1" {
			d.t.Errorf("query: %s, %v", got, err)
		}
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "did book now")
	},
}

var detailScenario = &scenario{
	begin: begins("declined", "declined"),
	finish: func(d *driver) {
		if s := d.status(firstID); string(s.CustomStatus) != `"paying"` {
			d.t.Errorf("custom status %s", s.CustomStatus)
		}
		d.pass(2 * time.Hour)
		d.raiseGo(firstID, "now")
		d.wantOutput(firstID, "half now") // the second attempt reads the heartbeat of the first one
	},
}

var compensationScenario = &scenario{
	begin: func(d *driver) {
		d.start(firstID, "trip", "hotel")
		d.raiseGo(firstID, "now")
	},
	finish: func(d *driver) {
		d.raiseGo(firstID, "undone")
		s, undone := d.wantStatus(firstID, client.StatusFailed), d.state.runs("undo hotel")
		if s.Failure.Message != "sold out" || undone != 1 {
			d.t.Errorf("failed: %+v, %d undone", s.Failure, undone)
		}
	},
}
