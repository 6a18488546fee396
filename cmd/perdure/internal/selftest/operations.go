package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/schedule"
)

// Names of scenarios that checks use.
const (
	apiScenario = "HTTPAPI"
	jobScenario = "BulkJob"
)

const (
	fanOut      = 100 // activities
	streamSteps = 60  // activities of the instance with a long history, three events each
	shortSteps  = 20
	purged      = 5 // instances of a bulk job
)

// operator runs the scenarios of an operator and of an HTTP client, and those with many activities.
type operator struct{ *hub }

// operations returns the scenarios of an operator and of an HTTP client, and those with many activities.
func (h *hub) operations(short bool) []trial {
	steps := streamSteps
	if short {
		steps = shortSteps
	}
	o := &operator{h}
	all := []trial{
		newTrial("FanOutOf100", o.fanOut),
		newTrial("EventStream", func(ctx context.Context, id string) error { return o.streamEvents(ctx, id, steps) }),
		newTrial("ScheduledRun", o.runSchedule),
		newTrial("DeadLetterRedriven", o.redriveDeadLetter),
		newTrial("PurgedIDReused", o.reusePurgedID),
		newTrial(apiScenario, o.callAPI),
	}
	if !short {
		all = append(all, newTrial(jobScenario, o.purgeWithJob))
	}
	return all
}

// result runs an instance, and checks its output and its history.
func (o *operator) result(ctx context.Context, orchestration, id string, input, want any) error {
	s, err := o.complete(ctx, orchestration, id, input)
	if err != nil {
		return err
	}
	if err := checkOutput(&s, want); err != nil {
		return err
	}
	return o.checkHistory(ctx, id)
}

func checkOutput(s *client.Status, want any) error {
	doc, err := json.Marshal(want)
	if err == nil && (s.Status != client.StatusCompleted || string(s.Output) != string(doc)) {
		err = fmt.Errorf("instance %s is %s with %.100s, want %s", s.InstanceID, s.Status, s.Output, doc)
	}
	return err
}

func (o *operator) fanOut(ctx context.Context, id string) error {
	return o.result(ctx, app.FanOut, id, fanOut, fanOut*(fanOut+1)/2)
}

// streamEvents follows an instance from its start to its end. The events must be those of its history.
func (o *operator) streamEvents(ctx context.Context, id string, steps int) error {
	if _, err := o.client.Start(ctx, app.Steps, steps, client.WithInstanceID(id)); err != nil {
		return err
	}
	return o.checkStream(ctx, o.client, id, steps)
}

// checkStream follows an instance with a client, and compares the events with the history. A number of activities must
// have completed.
func (o *operator) checkStream(ctx context.Context, c *client.Client, id string, steps int) error {
	var got []history.Event
	completed := 0
	for e, err := range c.Follow(ctx, id) {
		if err != nil {
			return err
		}
		got = append(got, e)
		if e.Kind == history.ActivityCompleted {
			completed++
		}
	}
	if completed != steps {
		return fmt.Errorf("%d of %d activities completed in the stream of %d events", completed, steps, len(got))
	}
	n := 0
	for e, err := range o.client.History(ctx, id) {
		switch {
		case err != nil:
			return err
		case n == len(got) || got[n].ID != e.ID || got[n].Kind != e.Kind:
			return fmt.Errorf("event %d of the history is not event %d of the stream of %d", e.ID, n, len(got))
		}
		n++
	}
	if n < len(got) {
		return fmt.Errorf("the stream has %d events, the history %d", len(got), n)
	}
	return o.checkHistory(ctx, id)
}

// runSchedule creates a schedule, waits for the run of the next minute, and deletes the schedule.
func (o *operator) runSchedule(ctx context.Context, id string) error {
	schedules := o.client.Schedules()
	if err := schedules.Put(ctx, schedule.Schedule{
		ID: id, Orchestration: app.Greet, Input: json.RawMessage(`"world"`), Expression: "* * * * *",
	}); err != nil {
		return err
	}
	var run *schedule.Run
	if err := o.until(ctx, func() error {
		s, err := schedules.Get(ctx, id)
		if err == nil && s.LastRun == nil {
			err = fmt.Errorf("no run of schedule %s has ended; the next one is due at %v", id, s.NextDue)
		}
		run = s.LastRun
		return err
	}); err != nil {
		return err
	}
	if err := schedules.Delete(ctx, id); err != nil {
		return err
	}
	if run.Outcome != schedule.OutcomeCompleted {
		return fmt.Errorf("run %s is %s", run.InstanceID, run.Outcome)
	}
	s, err := o.client.Status(ctx, run.InstanceID)
	if err != nil {
		return err
	}
	return checkOutput(&s, "hello, world")
}

// until repeats a check until it succeeds or ctx ends.
func (o *operator) until(ctx context.Context, check func() error) error {
	const pause = time.Second
	for {
		err := check()
		if err == nil {
			return nil
		}
		if late := o.sleep(ctx, pause); late != nil {
			return errors.Join(err, late)
		}
	}
}

// wantError returns an error unless a call failed with an error.
func wantError(call string, err, want error) error {
	switch {
	case errors.Is(err, want):
		return nil
	case err == nil:
		return fmt.Errorf("%s succeeded, want the error %w", call, want)
	default:
		return fmt.Errorf("%s: got %w, want %w", call, err, want)
	}
}

// reusePurgedID purges an instance with force while it runs, and starts another one with its ID.
func (o *operator) reusePurgedID(ctx context.Context, id string) error {
	if _, err := o.client.Start(ctx, app.Receive, "never", client.WithInstanceID(id)); err != nil {
		return err
	}
	if err := wantError("purge of a running instance", o.client.Purge(ctx, id), client.ErrNotEnded); err != nil {
		return err
	}
	if err := o.client.Purge(ctx, id, client.Force()); err != nil {
		return err
	}
	_, err := o.client.Status(ctx, id)
	if err := wantError("status of a purged instance", err, client.ErrNotFound); err != nil {
		return err
	}
	return o.result(ctx, app.Greet, id, "again", "hello, again")
}

// purgeWithJob starts instances with a tag, and purges them with a bulk job, which the next run of the sweeper does.
func (o *operator) purgeWithJob(ctx context.Context, id string) error {
	tags := map[string]string{"selftest": id}
	instance := func(n int) string { return fmt.Sprintf("%s-%d", id, n) }
	for n := range purged {
		if _, err := o.client.Start(ctx, app.Greet, "job", client.WithInstanceID(instance(n)),
			client.WithTags(tags)); err != nil {
			return err
		}
	}
	for n := range purged {
		if _, err := o.client.Wait(ctx, instance(n)); err != nil {
			return err
		}
	}
	request := admin.JobRequest{Operation: admin.OperationPurge, Filter: admin.Filter{Tags: tags}}
	if err := o.until(ctx, func() error { // indexes lag
		preview, err := o.admin.PreviewJob(ctx, request)
		if err == nil && preview.Matched != purged {
			err = fmt.Errorf("job would purge %d of %d instances", preview.Matched, purged)
		}
		return err
	}); err != nil {
		return err
	}
	job, err := o.admin.StartJob(ctx, request)
	if err != nil {
		return err
	}
	if err := o.until(ctx, func() error {
		job, err = o.admin.Job(ctx, job.ID)
		if err == nil && !job.Ended() {
			err = fmt.Errorf("job %s is %s with %d of %d instances", job.ID, job.State, job.Done, purged)
		}
		return err
	}); err != nil {
		return err
	}
	if job.Done != purged || job.Failed > 0 {
		return fmt.Errorf("job %s purged %d of %d instances: %v", job.ID, job.Done, purged, job.Errors)
	}
	return nil
}
