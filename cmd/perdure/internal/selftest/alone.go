package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

const pauseScenario = "HubPaused"

// disruptor runs the scenarios that disturb others.
type disruptor struct{ *hub }

// disruptions returns the scenarios that disturb others. They run one after the other, and not in a short run.
func (h *hub) disruptions(short bool) []trial {
	if short {
		return nil
	}
	d := &disruptor{h}
	return []trial{newTrial("WorkerExits", d.exitWorker), newTrial(pauseScenario, d.pause)}
}

// exitWorker runs an activity that ends the process of its worker. Its message arrives again, and completes.
func (d *disruptor) exitWorker(ctx context.Context, id string) error {
	s, err := d.complete(ctx, app.Exit, id, nil)
	if err != nil {
		return err
	}
	deliveries, err := client.Result[int](s)
	if err == nil && deliveries < 2 { //nolint:mnd // the first one ended
		err = fmt.Errorf("the activity completed in delivery %d", deliveries)
	}
	return errors.Join(err, d.checkHistory(ctx, id))
}

// pausedTime is the time in which a paused hub must not run a turn.
const pausedTime = 10 * time.Second

// pause pauses the hub, starts an instance, and resumes the hub. The instance starts after that.
func (d *disruptor) pause(ctx context.Context, id string) error {
	before, err := d.deployment.Mappings(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(before, func(m hubadmin.Mapping) bool { return m.Queue == "" }) {
		return fmt.Errorf("the rule of the sweeper is not in %v", before)
	}
	first, err := d.modified(ctx, before)
	if err != nil {
		return err
	}
	d.paused = true
	_, err = d.deployment.Pause(ctx)
	if err == nil {
		err = d.staysPending(ctx, id)
	}
	resumed, failed := d.resume(ctx)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if !slices.EqualFunc(before, resumed, func(a, b hubadmin.Mapping) bool {
		return a.UUID == b.UUID && a.State == b.State
	}) {
		return fmt.Errorf("mappings before the pause %v, after it %v", before, resumed)
	}
	last, err := d.modified(ctx, resumed)
	if err != nil {
		return err
	}
	for uuid, at := range first {
		if !last[uuid].After(at) {
			return fmt.Errorf("mapping %s was last modified at %v before the pause and %v after it", uuid, at,
				last[uuid])
		}
	}
	s, err := d.client.Wait(ctx, id)
	if err != nil {
		return err
	}
	return checkOutput(&s, "hello, paused")
}

// resumeLimit limits the time of a resume. With the other limits, it is within that of a run.
const resumeLimit = 25 * time.Second

// resume resumes the hub, also after the time limit of its scenario. After an interruption or the time limit of the
// test, it does not, because the run then removes the hub. A hub that is kept stays paused.
func (d *disruptor) resume(ctx context.Context) ([]hubadmin.Mapping, error) {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return nil, cause
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumeLimit)
	defer cancel()
	mappings, err := d.deployment.Resume(limited, false)
	d.paused = err != nil
	return mappings, err
}

// modified returns the times at which mappings were modified, by UUID.
func (d *disruptor) modified(ctx context.Context, mappings []hubadmin.Mapping) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	for i := range mappings {
		m := &mappings[i]
		if m.Queue == "" {
			continue // a rule
		}
		out, err := d.deployment.Lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &m.UUID})
		if err != nil {
			return nil, fmt.Errorf("read mapping %s: %w", m.UUID, err)
		}
		all[m.UUID] = aws.ToTime(out.LastModified)
	}
	return all, nil
}

// staysPending starts an instance, which must have no turn.
func (d *disruptor) staysPending(ctx context.Context, id string) error {
	if _, err := d.client.Start(ctx, app.Greet, "paused", client.WithInstanceID(id)); err != nil {
		return err
	}
	if err := d.sleep(ctx, pausedTime); err != nil {
		return err
	}
	s, err := d.client.Status(ctx, id)
	if err == nil && s.Status != client.StatusPending {
		err = fmt.Errorf("instance %s of the paused hub is %s", id, s.Status)
	}
	return err
}
