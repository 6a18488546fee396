package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

const (
	jobBatch     = 100 // instances that are matched, and then dealt with, before progress is noted
	jobAtOnce    = 32  // of them
	jobTries     = 5   // of an instance with which something fails that may yet succeed
	jobSteps     = 3   // that a look has time for at the least
	jobErrors    = 20  // kept
	jobErrorText = 500 // bytes of each
)

// jobRunner is a Timekeeper at its jobs.
type jobRunner struct{ *Timekeeper }

// workOnJobs goes on with all jobs side by side, a batch at a time, until none is left or the time of the look is over (R22). Each has its share of
// what is done at once, so that none waits for what another is at.
func (k jobRunner) workOnJobs(ctx context.Context, t *tally) {
	jobs, err := k.provider.ListJobs(ctx)
	if err != nil {
		t.note(ctx, err)
		return
	}
	jobs = slices.DeleteFunc(jobs, func(j provider.Job) bool { return j.Ended() })
	share := jobShare{atOnce: max(jobAtOnce/max(len(jobs), 1), 1), time: k.timeToWatch(ctx) / jobSteps}
	sideBySide(ctx, jobs, max(len(jobs), 1), func(j provider.Job) { k.workOnJob(ctx, t, &j, share) })
}

// jobShare is what a job has of a look: how many of its instances are dealt with at once, and how long a step may take. What takes longer goes on in
// a later step: a deletion is where it was.
type jobShare struct {
	atOnce int
	time   time.Duration
}

// workOnJob goes on with a job, until it is over, or the look is, or a step has got it nowhere: the next look tries again.
func (k jobRunner) workOnJob(ctx context.Context, t *tally, j *provider.Job, share jobShare) {
	for !j.Ended() && ctx.Err() == nil {
		before := len(j.Batch)
		err := k.stepJob(ctx, j, share)
		if errors.Is(err, provider.ErrConflict) {
			return // it was cancelled, or another look works on it
		}
		t.note(ctx, err)
		if err != nil || before > 0 && len(j.Batch) == before && j.Batch[0].Tries > 0 {
			return
		}
	}
	if !j.Ended() {
		t.note(ctx, context.Cause(ctx))
	}
}

// stepJob deals with what was matched, matches more, and notes both with one write. What is matched is written down before it is dealt with,
// so that each is counted once: dealing with it again comes to the same. Where no more can be matched, what was done is noted all the same, and why.
func (k jobRunner) stepJob(ctx context.Context, j *provider.Job, share jobShare) error {
	outcomes := k.dealWithAll(ctx, j, share)
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("dispatch: job %s: %w", j.ID, err) // it is not known what became of the batch
	}
	next := *j
	next.Batch, next.Errors = nil, slices.Clone(j.Errors)
	for i, err := range outcomes {
		countOutcome(&next, j.Batch[i], err)
	}
	slices.SortStableFunc(next.Batch, func(a, b provider.Target) int { return a.Tries - b.Tries }) // what had no turn is first
	var unmatched error
	if len(next.Batch) == 0 {
		if unmatched = k.matchMore(ctx, &next); unmatched != nil {
			noteError(&next, unmatched)
		}
	}
	next.UpdatedAt = k.options.Clock().UTC()
	if err := k.provider.PutJob(ctx, &next); err != nil {
		return err
	}
	*j = next
	if j.Ended() {
		k.options.Logger.InfoContext(ctx, "bulk job ended", "event", logevent.BulkJobEnded, "job", j.ID,
			"operation", j.Operation, "matched", j.Matched, "done", j.Done, "skipped", j.Skipped, "failed", j.Failed,
			"requestedBy", cmp.Or(j.RequestedBy, history.RequestedByClient))
	}
	return unmatched
}

// matchMore fills the batch, or ends the job.
func (k jobRunner) matchMore(ctx context.Context, j *provider.Job) error {
	if j.MatchingDone {
		j.State = provider.JobCompleted
		return nil
	}
	found, next, err := k.provider.MatchInstances(ctx, j.Filter, j.Next, jobBatch)
	if err != nil {
		return fmt.Errorf("dispatch: job %s: %w", j.ID, err)
	}
	j.Batch, j.Next, j.MatchingDone = found, next, next == ""
	j.Matched += int64(len(found))
	if j.MatchingDone && len(found) == 0 {
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
	case errors.Is(err, provider.ErrNotEnded):
		j.Skipped++
	case errors.Is(err, errNoTurn):
		j.Batch = append(j.Batch, of)
	case known && failed.Retryable && of.Tries < jobTries-1:
		of.Tries++
		j.Batch = append(j.Batch, of)
	default:
		j.Failed++
		noteError(j, err)
	}
}

// noteError keeps an error for people, of the first that are not as the last one.
func noteError(j *provider.Job, err error) {
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), jobErrorText)], "")
	if n := len(j.Errors); n < jobErrors && (n == 0 || j.Errors[n-1] != text) {
		j.Errors = append(j.Errors, text)
	}
}

// errNoTurn: the time of the step was over before this instance was dealt with.
var errNoTurn = errors.New("dispatch: no time was left for the instance")

// errSlow: the time of the step was over before it was done.
var errSlow = errors.New("time limit of the job step exceeded")

// dealWithAll deals with a batch, side by side, until the time of the step is over, and returns what became of each.
func (k jobRunner) dealWithAll(ctx context.Context, j *provider.Job, share jobShare) []error {
	limited, stop := context.WithTimeout(ctx, share.time)
	defer stop()
	outcomes := make([]error, len(j.Batch))
	places := make([]int, len(j.Batch))
	for i := range places {
		places[i], outcomes[i] = i, errNoTurn
	}
	sideBySide(limited, places, share.atOnce, func(i int) {
		err := k.dealWith(limited, j, j.Batch[i])
		if err != nil && limited.Err() != nil {
			err = &provider.Error{Op: string(j.Operation), InstanceID: j.Batch[i].InstanceID, Retryable: true, Err: errSlow}
		}
		outcomes[i] = err
	})
	return outcomes
}

// dealWith does with the life that was matched what the job is for. What is gone, or over where it was to end, is as it was to be.
func (k jobRunner) dealWith(ctx context.Context, j *provider.Job, of provider.Target) error {
	in, err := k.provider.ReadInstance(ctx, of.InstanceID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !in.CreatedAt.Equal(of.CreatedAt):
		return nil // another life of the id
	case j.Operation == provider.OperationPurge && in.Status == provider.StatusDeleting && of.Tries == jobTries-1:
		return nil // it is large: the watch finishes what was begun
	case j.Operation == provider.OperationPurge:
		return k.provider.DeleteIncarnation(provider.WithRequester(ctx, j.RequestedBy), in.InstanceID, in.StartID, j.Force)
	case in.Status.Terminal():
		return nil
	}
	m := provider.Message{InstanceID: in.InstanceID, StartID: in.StartID, Text: j.Message, RequestedBy: j.RequestedBy}
	switch j.Operation {
	case provider.OperationCancel:
		m.Kind, m.Reason, m.RequestedBy = provider.MessageCancel, string(perdure.ReasonRequested), cmp.Or(j.RequestedBy, history.RequestedByClient)
	case provider.OperationTerminate:
		m.Kind = provider.MessageTerminate
	default:
		return fmt.Errorf("dispatch: operation %q is not supported by this release", j.Operation)
	}
	return k.provider.EnqueueForOrchestrator(ctx, m)
}
