package client_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// Resume sends an update to the schedule. Resume also resumes the instance of the schedule if this instance is paused,
// or if the schedule runs in a release that cannot pause schedules.
func TestSchedulesResume_scheduleOrInstanceIsPaused_resumesIt(t *testing.T) {
	t.Parallel()
	const update, instance = `update perdure.schedule.resume "it has ended"`, "executionResumed it has ended"
	rejected := func(reason string) provider.UpdateResult {
		return provider.UpdateResult{
			Outcome: provider.UpdateRejected, Reason: reason, Error: &history.Failure{Type: "T", Message: "why"},
		}
	}
	responded := func(doc string) provider.UpdateResult {
		return provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: history.Payload(doc)}
	}
	for name, c := range map[string]struct {
		response provider.UpdateResult
		paused   bool // the instance of the schedule is paused
		sent     []string
		want     error
		code     client.UpdateCode
	}{
		"schedule was paused":     {response: responded("true"), sent: []string{update}},
		"schedule was not paused": {response: responded("false"), sent: []string{update}, want: client.ErrNotPaused},
		"schedule of an earlier release": {
			response: rejected(history.RejectedNoHandler), sent: []string{update, instance}, want: client.ErrNotPaused,
		},
		"instance was paused": {response: responded("false"), paused: true, sent: []string{instance, update}},
		"both were paused":    {response: responded("true"), paused: true, sent: []string{instance, update}},
		"both were paused by an earlier release": {
			response: rejected(history.RejectedNoHandler), paused: true, sent: []string{instance, update},
		},
		"too many updates": {
			response: rejected(history.RejectedLimit), sent: []string{update}, code: client.UpdateLimitExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeprovider.New(time.Now, schedule.OrchestrationName)
			cl := connect(p)
			if err := cl.Schedules().Put(t.Context(),
				schedule.Schedule{ID: "s", Orchestration: "report", Expression: "@daily"}); err != nil {
				t.Fatal(err)
			}
			if c.paused {
				p.Append(schedule.InstanceID("s"), history.Event{Kind: history.ExecutionSuspended, Time: time.Now()})
			}
			p.UpdateWith(func(provider.Message) *provider.UpdateResult { return &c.response })
			err := cl.Schedules().Resume(t.Context(), "s", "it has ended")
			e, ended := errors.AsType[*client.UpdateError](err)
			if ended != (c.code != "") || ended && e.Code != c.code || !ended && !errors.Is(err, c.want) {
				t.Errorf("got error %v", err)
			}
			var sent []string
			for _, m := range p.Sent() {
				sent = append(sent,
					strings.Join(strings.Fields(string(m.Kind)+" "+m.Name+" "+string(m.Data)+m.Text), " "))
			}
			if !slices.Equal(sent, c.sent) {
				t.Errorf("got messages %q, want %q", sent, c.sent)
			}
		})
	}
}

// Calls with the same key name the same run and send the same event.
func TestSchedulesTrigger_key_determinesRun(t *testing.T) {
	t.Parallel()
	p := fakeprovider.New(time.Now, schedule.OrchestrationName)
	c := connect(p)
	if err := c.Schedules().Put(t.Context(),
		schedule.Schedule{ID: "s", Orchestration: "report", Expression: "@daily"}); err != nil {
		t.Fatal(err)
	}
	at := began.Add(123 * time.Millisecond)
	key := ulid.MustNew(ulid.Timestamp(at), rand.Reader).String()
	for range 2 {
		if run, err := c.Schedules().Trigger(t.Context(), "s", client.WithTriggerKey(key)); err != nil ||
			run != schedule.RunID("s", at) {
			t.Errorf("run %q, %v", run, err)
		}
	}
	for _, m := range p.Sent() {
		if m.EventID != key {
			t.Errorf("sent %+v", m)
		}
	}
	late := ulid.MustNew(ulid.Timestamp(time.Now().Add(time.Hour)), rand.Reader).String()
	for _, wrong := range []string{"k", late} {
		_, err := c.Schedules().Trigger(t.Context(), "s", client.WithTriggerKey(wrong))
		if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field != "key" {
			t.Errorf("%q: error %v", wrong, err)
		}
	}
}
