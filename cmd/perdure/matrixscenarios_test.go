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

// scenario uses one feature. begin ends when the instance waits for its event or for the feature. finish continues it
// to its end, and checks that the feature has had its effect.
type scenario struct {
	instance string // default: one
	codecs   []perdure.Codec
	inBucket bool // the code reads payloads of the payload store
	begin    func(d *driver)
	finish   func(d *driver)
}

// id returns the ID of the instance whose history shows the feature.
func (s *scenario) id() string { return cmp.Or(s.instance, one) }

func begins(name, input string) func(d *driver) {
	return func(d *driver) { d.t.Helper(); d.start(one, name, input) }
}

var encoded = &scenario{
	codecs: []perdure.Codec{turned{}},
	begin:  begins("plain", "secret"),
	finish: func(d *driver) {
		d.proceed(one, "now")
		d.wantOutput(one, "did secret now")
	},
}

var large = &scenario{
	inBucket: true,
	begin:    begins("plain", "large"),
	finish: func(d *driver) {
		d.proceed(one, "now")
		d.wantOutput(one, strings.Repeat("x", 300<<10)+" now")
	},
}

var exclusive = &scenario{
	begin: func(d *driver) {
		d.start(one, "alone", "alone")
		d.start(other, "alone", "alone")
	},
	finish: func(d *driver) {
		d.pass(5 * time.Minute)
		for _, id := range []string{one, other} {
			d.proceed(id, "now")
			d.wantOutput(id, "did alone now")
		}
		if d.out.most != 1 {
			d.t.Errorf("%d activities with one exclusive key ran at a time", d.out.most)
		}
	},
}

var inline = &scenario{
	begin: begins("inline", "tariff"),
	finish: func(d *driver) {
		if e := d.event(one, history.ActivityScheduled); !e.Inline {
			d.t.Errorf("not inline: %+v", e)
		}
		d.proceed(one, "now")
		d.wantOutput(one, "did tariff now")
	},
}

var continuing = &scenario{
	begin: begins("rounds", "first"),
	finish: func(d *driver) {
		d.proceed(one, "on")
		if s := d.wantStatus(one, client.StatusRunning); s.ExecutionNumber != 2 {
			d.t.Errorf("execution %d, want 2", s.ExecutionNumber)
		}
		d.proceed(one, "now")
		d.wantOutput(one, "did second now")
	},
}

var pausing = &scenario{
	begin: func(d *driver) {
		d.start(one, "plain", "work")
		d.check(d.sdk.Pause(d.t.Context(), one, "audit"))
		d.pass(10 * time.Second)
	},
	finish: func(d *driver) {
		d.proceed(one, "now")
		if s := d.wantStatus(one, client.StatusPaused); s.Paused == nil || s.Paused.Message != "audit" {
			d.t.Errorf("paused: %+v", s.Paused)
		}
		d.check(d.sdk.Resume(d.t.Context(), one, "done"))
		d.pass(10 * time.Second)
		d.wantOutput(one, "did work now")
	},
}

// updated sends the update. Its repetition waits for the same handler.
func updated(d *driver) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	return d.sdk.Update(ctx, one, "address", "Main St", client.WithUpdateID("u1"))
}

var updating = &scenario{
	begin: func(d *driver) {
		d.start(one, "parcel", "Old St")
		_, _ = updated(d) // its activity may be lost
	},
	finish: func(d *driver) {
		if got, err := updated(d); err != nil || string(got) != `"did Main St"` {
			d.t.Errorf("update: %s, %v", got, err)
		}
		_, err := d.sdk.Update(d.t.Context(), one, "address", "")
		if e, ok := errors.AsType[*client.UpdateError](err); !ok || e.Code != client.UpdateRejected {
			d.t.Errorf("update without an address: %v", err)
		}
		d.proceed(one, "now")
		d.wantOutput(one, "Main St")
	},
}

var completing = &scenario{
	begin: begins("plain", "token"),
	finish: func(d *driver) {
		d.check(d.sdk.CompleteActivity(d.t.Context(), d.out.token, "carried"))
		d.pass(10 * time.Second)
		err := d.sdk.CompleteActivity(d.t.Context(), d.out.token, "again")
		if e, ok := errors.AsType[*client.TokenError](err); !ok {
			d.t.Errorf("completed twice: %v, %v", err, e)
		}
		d.proceed(one, "now")
		d.wantOutput(one, "carried now")
		if n := d.out.runs("token"); n != 1 {
			d.t.Errorf("the pending activity ran %d times", n)
		}
	},
}

// The instances of the schedule. Virtual time starts at midnight of January 1, 2000.
const (
	planned   = "nightly"
	plannedIn = "schedule:nightly"
	firstRun  = "nightly@2000-01-01T02:00:00Z"
	secondRun = "nightly@2000-01-02T02:00:00Z"
)

var scheduling = &scenario{
	instance: firstRun,
	begin: func(d *driver) {
		d.check(d.sdk.PutSchedule(d.t.Context(), schedule.Schedule{
			ID: planned, Orchestration: "plain", Input: json.RawMessage(`"report"`), Expression: "0 2 * * *",
		}))
		d.pass(2*time.Hour + time.Minute)
	},
	finish: func(d *driver) {
		d.proceed(firstRun, "now")
		d.wantOutput(firstRun, "did report now")
		d.pass(24 * time.Hour)
		d.wantStatus(secondRun, client.StatusRunning)
		s, err := d.sdk.Schedule(d.t.Context(), planned)
		d.check(err)
		if s.Started != 2 {
			d.t.Errorf("%d runs started, want 2", s.Started)
		}
	},
}

var retention = &scenario{
	begin: begins("kept", "work"),
	finish: func(d *driver) {
		d.proceed(one, "now")
		d.wantOutput(one, "did work now")
		d.pass(72 * time.Hour)
		if s, err := d.sdk.Status(d.t.Context(), one); !errors.Is(err, client.ErrNotFound) {
			d.t.Errorf("after the retention: %s, %v", s.Status, err)
		}
	},
}

var versions = &scenario{
	begin: func(d *driver) {
		d.start(other, "versioned", "work", client.WithVersion("0"))
		d.start(one, "versioned", "work")
	},
	finish: func(d *driver) {
		for id, output := range map[string]string{one: "gift: did work now", other: "did work now"} {
			d.proceed(id, "now")
			d.wantOutput(id, output)
		}
	},
}

// refilled calls the entity. Its repetition waits for the same operation.
func refilled(d *driver) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	return d.sdk.CallEntity(ctx, "stock", "tea", "refill", 5, client.WithUpdateID("u1"))
}

var entities = &scenario{
	instance: "@stock@tea",
	begin:    func(d *driver) { _, _ = refilled(d) },
	finish: func(d *driver) {
		if got, err := refilled(d); err != nil || string(got) != "5" {
			d.t.Errorf("refill: %s, %v", got, err)
		}
		if got, err := d.sdk.EntityState(d.t.Context(), "stock", "tea"); err != nil || string(got) != "5" {
			d.t.Errorf("state: %s, %v", got, err)
		}
	},
}

var cancelling = &scenario{
	begin: func(d *driver) {
		d.start(one, "cancelled", "slow")
		d.check(d.sdk.Cancel(client.ContextWithCaller(d.t.Context(), "ann"), one, "wrong file"))
		d.pass(10 * time.Second)
	},
	finish: func(d *driver) {
		d.wantStatus(one, client.StatusCancelling)
		d.proceed(one, "now")
		s := d.wantStatus(one, client.StatusCancelled)
		if f := s.Failure; f == nil || f.Message != "wrong file" || f.Reason != string(perdure.ReasonRequested) {
			d.t.Errorf("cancelled: %+v", s.Failure)
		}
		all, err := client.Collect(d.sdk.Cancellations(d.t.Context(), one, ""))
		d.check(err)
		if len(all) != 2 || all[1].Name != step || all[1].End != client.OutcomeStopped || all[1].SeenAt.IsZero() {
			d.t.Errorf("cancellations: %+v", all)
		}
	},
}

var querying = &scenario{
	begin: begins("counted", "book"),
	finish: func(d *driver) {
		if got, err := d.sdk.Query(d.t.Context(), one, "count", "book"); err != nil || string(got) != "1" {
			d.t.Errorf("query: %s, %v", got, err)
		}
		d.proceed(one, "now")
		d.wantOutput(one, "did book now")
	},
}

var details = &scenario{
	begin: begins("declined", "declined"),
	finish: func(d *driver) {
		if s := d.status(one); string(s.CustomStatus) != `"paying"` {
			d.t.Errorf("custom status %s", s.CustomStatus)
		}
		d.pass(2 * time.Hour)
		d.proceed(one, "now")
		d.wantOutput(one, "half now") // the second attempt reads the heartbeat of the first one
	},
}

var compensating = &scenario{
	begin: func(d *driver) {
		d.start(one, "trip", "hotel")
		d.proceed(one, "now")
	},
	finish: func(d *driver) {
		d.proceed(one, "undone")
		s, undone := d.wantStatus(one, client.StatusFailed), d.out.runs("undo hotel")
		if s.Failure.Message != "sold out" || undone != 1 {
			d.t.Errorf("failed: %+v, %d undone", s.Failure, undone)
		}
	},
}
