package sweeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

const (
	jobBatchSize     = 100 // instances that are matched and processed between two writes of the job
	jobConcurrency   = 32  // concurrent operations on instances, of all jobs
	jobMaxTries      = 5   // of an instance that fails with a retryable error
	jobStepsPerSweep = 3   // at least
	jobMaxErrors     = 20  // that a job stores
	jobMaxErrorBytes = 500 // of each
)

// jobRunner runs the bulk jobs of a hub.
type jobRunner struct{ *Sweeper }

// runJobs continues all jobs concurrently, one batch at a time, until all have ended or the time limit expires (R22).
// Each job has its share of the concurrent calls, so that no job waits for another.
func (k jobRunner) runJobs(ctx context.Context, r *result) {
	jobs, err := k.Provider.ListJobs(ctx)
	if err != nil {
		r.add(ctx, err)
		return
	}
	jobs = slices.DeleteFunc(jobs, func(j provider.Job) bool { return j.Ended() })
	share := jobShare{
		concurrency: max(jobConcurrency/max(len(jobs), 1), 1),
		stepTime:    k.timeLimit(ctx) / jobStepsPerSweep,
	}
	forEach(ctx, slices.Values(jobs), max(len(jobs), 1), func(j provider.Job) { k.runJob(ctx, r, &j, share) })
}

// jobShare is the part of a sweep that one job may use: its number of concurrent operations, and the time limit of a
// step. A later step continues an operation that exceeds the limit, for example a deletion.
type jobShare struct {
	concurrency int
	stepTime    time.Duration
}

// runJob continues a job until it ends, the sweep ends, or a step makes no progress. The next sweep tries again.
func (k jobRunner) runJob(ctx context.Context, r *result, j *provider.Job, share jobShare) {
	for !j.Ended() && ctx.Err() == nil {
		before := len(j.Batch)
		err := k.step(ctx, j, share)
		if errors.Is(err, provider.ErrConflict) {
			return // the job was cancelled, or another sweep runs it
		}
		r.add(ctx, err)
		if err != nil || before > 0 && len(j.Batch) == before && j.Batch[0].Tries > 0 {
			return
		}
	}
	if !j.Ended() {
		r.add(ctx, context.Cause(ctx))
	}
}

// step processes the matched instances, matches more, and stores both with one write. Matches are stored before they
// are processed, so that each is counted once. Repeated processing has no effect. If matching fails, the step stores
// the results of the processed instances, and the error.
func (k jobRunner) step(ctx context.Context, j *provider.Job, share jobShare) error {
	outcomes := k.processBatch(ctx, j, share)
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("dispatch: job %s: %w", j.ID, err) // the outcomes are not known
	}
	next := *j
	next.Batch, next.Errors = nil, slices.Clone(j.Errors)
	for i, err := range outcomes {
		countOutcome(&next, j.Batch[i], err)
	}
	// instances that were not processed come first
	slices.SortStableFunc(next.Batch, func(a, b provider.Target) int { return a.Tries - b.Tries })
	var matchErr error
	if len(next.Batch) == 0 {
		if matchErr = k.match(ctx, &next); matchErr != nil {
			addJobError(&next, matchErr)
		}
	}
	next.UpdatedAt = k.Clock().UTC()
	if err := k.Provider.PutJob(ctx, &next); err != nil {
		return err
	}
	*j = next
	if j.Ended() {
		k.Logger.InfoContext(ctx, "bulk job ended", "event", logevent.BulkJobEnded, "job", j.ID,
			"operation", j.Operation, "matched", j.Matched, "done", j.Done, "skipped", j.Skipped, "failed", j.Failed,
			"requestedBy", cmp.Or(j.RequestedBy, history.RequestedByClient))
	}
	return matchErr
}

// match matches the next batch, or ends the job.
func (k jobRunner) match(ctx context.Context, j *provider.Job) error {
	if j.MatchingDone {
		j.State = provider.JobCompleted
		return nil
	}
	found, next, err := k.Provider.MatchInstances(ctx, j.Filter, j.Next, jobBatchSize)
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

// countOutcome counts the outcome of an instance, or adds the instance to the batch again.
func countOutcome(j *provider.Job, of provider.Target, err error) {
	failed, known := errors.AsType[*provider.Error](err)
	switch {
	case err == nil:
		j.Done++
	case errors.Is(err, provider.ErrNotEnded):
		j.Skipped++
	case errors.Is(err, errNotProcessed):
		j.Batch = append(j.Batch, of)
	case known && failed.Retryable && of.Tries < jobMaxTries-1:
		of.Tries++
		j.Batch = append(j.Batch, of)
	default:
		j.Failed++
		addJobError(j, err)
	}
}

// addJobError stores an error in a job, unless it equals the previous one or the job stores jobMaxErrors.
func addJobError(j *provider.Job, err error) {
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), jobMaxErrorBytes)], "")
	if n := len(j.Errors); n < jobMaxErrors && (n == 0 || j.Errors[n-1] != text) {
		j.Errors = append(j.Errors, text)
	}
}
