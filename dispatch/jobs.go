package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const (
	jobBatch     = 100 // instances that are matched, and then dealt with, before progress is noted
	jobAtOnce    = 32  // of them
	jobTries     = 5   // of what fails and may yet succeed
	jobErrors    = 20  // kept
	jobErrorText = 500 // bytes of each
)

// workOnJobs goes on with each job in turn, a batch at a time, until none is left or the time of the look is over (R22).
func (k *Timekeeper) workOnJobs(ctx context.Context, t *tally) {
	jobs, err := k.provider.ListJobs(ctx)
	if err != nil {
		t.note(ctx, err)
		return
	}
	jobs = slices.DeleteFunc(jobs, func(j provider.Job) bool { return j.Over() })
	for len(jobs) > 0 && ctx.Err() == nil {
		var rest []provider.Job
		for i := range jobs {
			before := jobs[i].Done
			err := k.stepJob(ctx, &jobs[i])
			if errors.Is(err, provider.ErrConflict) {
				continue // it was cancelled, or another look works on it
			}
			t.note(ctx, err)
			if err == nil && !jobs[i].Over() && (jobs[i].Tries == 0 || jobs[i].Done > before) {
				rest = append(rest, jobs[i])
			}
		}
		jobs = rest
	}
	if len(jobs) > 0 {
		t.note(ctx, context.Cause(ctx))
	}
}

// stepJob deals with what was matched, matches more, and notes both with one write. What is matched is written down before it is dealt with,
// so that each is counted once: dealing with it again comes to the same.
func (k *Timekeeper) stepJob(ctx context.Context, j *provider.Job) error {
	outcomes := k.dealWithAll(ctx, j)
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("dispatch: job %s: %w", j.ID, err) // it is not known what became of the batch
	}
	next := *j
	next.Batch, next.Errors = nil, slices.Clone(j.Errors)
	next.Tries++
	for i, err := range outcomes {
		countOutcome(&next, j.Batch[i], err)
	}
	if len(next.Batch) == 0 {
		next.Tries = 0
		if err := k.matchMore(ctx, &next); err != nil {
			return err
		}
	}
	next.UpdatedAt = k.options.Clock().UTC()
	if err := k.provider.PutJob(ctx, &next); err != nil {
		return err
	}
	*j = next
	if j.Over() {
		k.options.Logger.InfoContext(ctx, "a job has ended", "job", j.ID, "operation", j.Operation, "matched", j.Matched, "done", j.Done, "skipped", j.Skipped, "failed", j.Failed)
	}
	return nil
}

// matchMore fills the batch, or ends the job.
func (k *Timekeeper) matchMore(ctx context.Context, j *provider.Job) error {
	if j.AtEnd {
		j.State = provider.JobCompleted
		return nil
	}
	found, next, err := k.provider.MatchInstances(ctx, j.Filter, j.Next, jobBatch)
	if err != nil {
		return fmt.Errorf("dispatch: job %s: %w", j.ID, err)
	}
	j.Batch, j.Next, j.AtEnd = found, next, next == ""
	j.Matched += int64(len(found))
	if j.AtEnd && len(found) == 0 {
		j.State = provider.JobCompleted
	}
	return nil
}

// countOutcome counts what became of an instance, or has it tried again.
func countOutcome(j *provider.Job, of provider.Target, err error) {
	failed, known := errors.AsType[*provider.Error](err)
	switch {
	case err == nil:
		j.Done++
	case errors.Is(err, provider.ErrNotTerminal):
		j.Skipped++
	case known && failed.Retryable && j.Tries < jobTries:
		j.Batch = append(j.Batch, of)
	default:
		if j.Failed++; len(j.Errors) < jobErrors {
			text := err.Error()
			j.Errors = append(j.Errors, strings.ToValidUTF8(text[:min(len(text), jobErrorText)], ""))
		}
	}
}

// dealWithAll deals with a batch, side by side, and returns what became of each.
func (k *Timekeeper) dealWithAll(ctx context.Context, j *provider.Job) []error {
	outcomes := make([]error, len(j.Batch))
	places := make([]int, len(j.Batch))
	for i := range places {
		places[i] = i
	}
	sideBySide(ctx, places, jobAtOnce, func(i int) { outcomes[i] = k.dealWith(ctx, j, j.Batch[i]) })
	return outcomes
}

// dealWith does what the job says with the life that was matched. What is gone, or over where it was to end, is as it was to be.
func (k *Timekeeper) dealWith(ctx context.Context, j *provider.Job, of provider.Target) error {
	in, err := k.provider.ReadInstance(ctx, of.InstanceID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !in.CreatedAt.Equal(of.CreatedAt):
		return nil // another life of the id
	case j.Operation == provider.OperationPurge:
		return k.provider.DeleteLife(ctx, in.InstanceID, in.StartID, j.Force)
	case in.Status.Terminal():
		return nil
	}
	m := provider.Message{InstanceID: in.InstanceID, StartID: in.StartID, Text: j.Message}
	switch j.Operation {
	case provider.OperationCancel:
		m.Kind, m.Reason, m.RequestedBy = provider.MessageCancel, string(perdure.ReasonRequested), history.RequestedByClient
	case provider.OperationTerminate:
		m.Kind = provider.MessageTerminate
	default:
		return fmt.Errorf("dispatch: this release knows no operation %q", j.Operation)
	}
	return k.provider.EnqueueForOrchestrator(ctx, m)
}
