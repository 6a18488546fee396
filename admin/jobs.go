package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Job is a bulk job, an operation on many instances that the hub runs in the background. The HTTP API encodes it as an
// httpapi.Job.
type Job = provider.Job

// Filter selects the instances of a bulk job. An instance matches if it matches all fields that are not zero.
type Filter = provider.Filter

// Operations of a bulk job.
const (
	OperationPurge     = provider.OperationPurge
	OperationCancel    = provider.OperationCancel
	OperationTerminate = provider.OperationTerminate
)

// JobRequest describes a bulk job.
type JobRequest struct {
	// Operation is OperationPurge, OperationCancel or OperationTerminate.
	Operation provider.Operation
	// Filter selects the instances. It must have a condition unless All is set. If Filter.Statuses is empty, the
	// Operation selects the statuses. OperationCancel and OperationTerminate apply to instances that have not ended.
	// OperationPurge applies to instances that have ended, or with Force to all instances.
	Filter Filter
	// All selects every instance of the hub. It requires a Filter without conditions.
	All bool
	// Force also purges instances that have not ended. It requires OperationPurge.
	Force bool
	// Message is the reason of a cancel or a terminate, at most 1 KiB.
	Message string
}

const (
	fieldOperation = "operation"
	fieldStatuses  = "statuses"
)

// maxJobs is the maximum number of running jobs.
const maxJobs = 100

// maxJobIDBytes is longer than any job ID.
const maxJobIDBytes = 256

// StartJob creates a job that applies an operation to all instances that match a filter and were started before now.
// The hub runs the job in the background and starts it within minutes. The job continues after failures of the hub's
// functions. Use Job to read the progress and CancelJob to stop the job.
//
// The job processes an instance that matched even if the instance has changed since then. It does not process a later
// incarnation of the same ID.
//
// StartJob returns a *provider.FieldError for invalid input, or if 100 jobs are already running.
func (c *Client) StartJob(ctx context.Context, r JobRequest, opts ...StartJobOption) (Job, error) {
	var o startJobOptions
	for _, opt := range opts {
		opt(&o)
	}
	j, err := c.newJob(r)
	if err == nil && o.key != nil {
		err = inputcheck.Text("key", *o.key, 1, maxJobKeyBytes)
	}
	if err != nil {
		return Job{}, fmt.Errorf("admin: start job: %w", err)
	}
	j.RequestedBy = c.calls.Caller(ctx)
	put := func(ctx context.Context) error { return c.ops.startJob(ctx, &r, &j, o.key) }
	if err := c.calls.Run(ctx, perdure.ClientCall{Operation: clientcall.Bulk}, put); err != nil {
		return Job{}, fmt.Errorf("admin: start job: %w", err)
	}
	return j, nil
}

// StartJobOption is an option of StartJob.
type StartJobOption func(*startJobOptions)

type startJobOptions struct{ key *string }

// WithJobKey makes all calls of StartJob with the same key one call. The first one counts, and later ones return its
// job, even if their requests differ. A key can be used again a week after its job has ended. It has 1 to 256 bytes of
// UTF-8 without control characters.
func WithJobKey(key string) StartJobOption { return func(o *startJobOptions) { o.key = &key } }

const maxJobKeyBytes = 256

func jobIDOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "k" + hex.EncodeToString(sum[:20])
}

// startJob stores a new job unless too many are running. With a key, it returns the job of an earlier call.
func (l local) startJob(ctx context.Context, _ *JobRequest, j *Job, key *string) error {
	if key == nil {
		return l.putJob(ctx, j)
	}
	j.ID = jobIDOf(*key)
	earlier, err := l.hub.ReadJob(ctx, j.ID)
	if errors.Is(err, provider.ErrNotFound) {
		if err = l.putJob(ctx, j); !errors.Is(err, provider.ErrConflict) {
			return err
		}
		earlier, err = l.hub.ReadJob(ctx, j.ID) // another call with the key came first
	}
	if err == nil {
		*j = earlier
	}
	return err
}

// putJob stores a new job unless too many are running.
func (l local) putJob(ctx context.Context, j *Job) error {
	jobs, err := l.hub.ListJobs(ctx)
	if err != nil {
		return err
	}
	if len(slices.DeleteFunc(jobs, func(j Job) bool { return j.Ended() })) >= maxJobs {
		return &provider.FieldError{
			Field:   fieldOperation,
			Problem: fmt.Sprintf("exceeds the limit of %d running jobs; cancel one or try again later", maxJobs),
		}
	}
	return l.hub.PutJob(ctx, j)
}

// JobPreview is the number of instances that StartJob would match, with examples.
type JobPreview struct {
	// Matched is the number of matching instances.
	Matched int64 `json:"matched"`
	// Sample holds the IDs of the first 10 matches.
	Sample []string `json:"sample"`
	// StartedBefore is the time of the preview. Only instances that were started earlier are counted. Set
	// Filter.StartedBefore of the JobRequest to this time to exclude instances that were started after the preview.
	StartedBefore time.Time `json:"startedBefore"`
	// Complete is false if the search reached the time limit. Matched is then the number of matches until that time.
	Complete bool `json:"complete"`
}

const (
	previewSample = 10
	previewPage   = 1000
	previewTime   = 20 * time.Second
)

// PreviewJob counts the instances that StartJob would match. It is read-only and searches for at most 20 seconds.
func (c *Client) PreviewJob(ctx context.Context, r JobRequest) (JobPreview, error) {
	p := JobPreview{Sample: []string{}}
	j, err := c.newJob(r)
	if err == nil {
		p, err = c.ops.previewJob(ctx, &r, &j)
	}
	if err != nil {
		return p, fmt.Errorf("admin: preview job: %w", err)
	}
	return p, nil
}

func (l local) previewJob(ctx context.Context, _ *JobRequest, j *Job) (JobPreview, error) {
	p := JobPreview{Sample: []string{}, StartedBefore: j.Filter.StartedBefore}
	for start := l.now(); l.now().Sub(start) < previewTime; {
		found, next, err := l.hub.MatchInstances(ctx, j.Filter, j.Next, previewPage)
		if err != nil {
			return p, err
		}
		for _, t := range found[:min(len(found), previewSample-len(p.Sample))] {
			p.Sample = append(p.Sample, t.InstanceID)
		}
		p.Matched += int64(len(found))
		if j.Next = next; next == "" {
			p.Complete = true
			break
		}
	}
	return p, nil
}

func (c *Client) newJob(r JobRequest) (Job, error) {
	now := c.now().UTC().Truncate(time.Millisecond)
	f, err := r.completeFilter(now)
	if err != nil {
		return Job{}, err
	}
	if err := inputcheck.Message(r.Message); err != nil {
		return Job{}, err
	}
	if r.Operation == OperationPurge && r.Message != "" {
		return Job{}, &provider.FieldError{
			Field: inputcheck.FieldMessage, Problem: "requires the operation cancel or terminate",
		}
	}
	return Job{
		ID: ulid.MustNew(ulid.Timestamp(now), rand.Reader).String(), Operation: r.Operation, Filter: f, Force: r.Force,
		Message: r.Message, State: provider.JobRunning, CreatedAt: now, UpdatedAt: now,
	}, nil
}

// endedStatuses and activeStatuses are the statuses to which an operation applies by default.
var (
	endedStatuses = []provider.RuntimeStatus{
		provider.StatusCompleted, provider.StatusFailed, provider.StatusCancelled, provider.StatusTerminated,
	}
	activeStatuses = []provider.RuntimeStatus{
		provider.StatusPending, provider.StatusRunning, provider.StatusCancelling, provider.StatusBlocked,
		provider.StatusPaused,
	}
)

// completeFilter checks the filter and returns it with its defaults.
func (r *JobRequest) completeFilter(now time.Time) (Filter, error) {
	f := r.Filter
	allowed, err := r.allowedStatuses()
	if err != nil {
		return f, err
	}
	if isEmpty(&f) != r.All {
		problem := "cannot be combined with a filter"
		if !r.All {
			problem = "must be true if no filter is given"
		}
		return f, &provider.FieldError{Field: "all", Problem: problem}
	}
	if err := r.checkStatuses(allowed); err != nil {
		return f, err
	}

	if len(f.Statuses) == 0 {
		f.Statuses = allowed
	}
	if f.StartedBefore.IsZero() || f.StartedBefore.After(now) {
		f.StartedBefore = now
	}
	if !f.StartedAfter.Before(f.StartedBefore) {
		return f, &provider.FieldError{Field: "startedAfter", Problem: "must be before startedBefore and in the past"}
	}
	return f, inputcheck.Selection(f.Orchestration, f.Version, f.ParentID, f.Tags)
}

// checkStatuses checks that the operation applies to the statuses of the filter.
func (r *JobRequest) checkStatuses(allowed []provider.RuntimeStatus) error {
	for _, s := range r.Filter.Statuses {
		if err := inputcheck.Status(fieldStatuses, s); err != nil {
			return err
		}
		if !slices.Contains(allowed, s) {
			unless := ""
			if r.Operation == OperationPurge {
				unless = " without force"
			}
			problem := fmt.Sprintf("cannot include %s: %s does not apply to it%s", s, r.Operation, unless)
			return &provider.FieldError{Field: fieldStatuses, Problem: problem}
		}
	}
	return nil
}

// allowedStatuses returns the statuses to which the operation applies.
func (r *JobRequest) allowedStatuses() ([]provider.RuntimeStatus, error) {
	switch {
	case r.Operation == OperationPurge && r.Force:
		return slices.Concat(endedStatuses, activeStatuses), nil
	case r.Operation == OperationPurge:
		return endedStatuses, nil
	case r.Operation != OperationCancel && r.Operation != OperationTerminate:
		return nil, &provider.FieldError{Field: fieldOperation, Problem: fmt.Sprintf("must be %s, %s or %s, is %q",
			OperationPurge, OperationCancel, OperationTerminate, provider.Excerpt(r.Operation))}
	case r.Force:
		return nil, &provider.FieldError{Field: "force", Problem: "requires the operation purge"}
	default:
		return activeStatuses, nil
	}
}

// isEmpty reports whether a filter has no condition.
func isEmpty(f *Filter) bool {
	return f.Orchestration == "" && f.Version == "" && f.ParentID == "" && len(f.Statuses) == 0 && len(f.Tags) == 0 &&
		f.StartedAfter.IsZero() && f.StartedBefore.IsZero() && f.UpdatedBefore.IsZero()
}

// Jobs yields the hub's running bulk jobs and the jobs that ended within the last seven days, newest first. It reads
// all jobs before it yields the first one. The iterator ends with the first error.
func (c *Client) Jobs(ctx context.Context) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		jobs, err := c.ops.listJobs(ctx)
		slices.SortStableFunc(jobs, func(a, b Job) int { return b.CreatedAt.Compare(a.CreatedAt) })
		for i := range jobs {
			if !yield(jobs[i], nil) {
				return
			}
		}
		if err != nil {
			yield(Job{}, fmt.Errorf("admin: jobs: %w", err))
		}
	}
}

// Job returns the state and progress of a bulk job. It returns provider.ErrNotFound if the job does not exist.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	err := inputcheck.Text("jobId", id, 1, maxJobIDBytes)
	var j Job
	if err == nil {
		j, err = c.ops.readJob(ctx, id)
	}
	if err != nil {
		return Job{}, fmt.Errorf("admin: job: %w", err)
	}
	return j, nil
}

// maxCancelAttempts limits the attempts of a cancel that conflicts with writes of the job's progress.
const maxCancelAttempts = 10

// CancelJob stops a bulk job and returns its state. Changes that the job has made remain, and up to 100 instances that
// it is processing may still change. CancelJob does nothing if the job has ended. It returns provider.ErrNotFound
// if the job does not exist.
func (c *Client) CancelJob(ctx context.Context, id string) (j Job, err error) {
	call := perdure.ClientCall{Operation: clientcall.CancelJob}
	err = c.calls.Run(ctx, call, func(ctx context.Context) (err error) {
		j, err = c.ops.cancelJob(ctx, id)
		return err
	})
	return j, err
}

func (l local) cancelJob(ctx context.Context, id string) (Job, error) {
	for attempt := 1; ; attempt++ {
		j, err := l.Job(ctx, id)
		if err != nil || j.Ended() {
			return j, err
		}

		j.State = provider.JobCancelled
		j.UpdatedAt = l.now().UTC().Truncate(time.Millisecond)
		if err = l.hub.PutJob(ctx, &j); err == nil {
			return j, nil
		}
		if !errors.Is(err, provider.ErrConflict) || attempt == maxCancelAttempts {
			return j, fmt.Errorf("admin: cancel job: %w", err)
		}
	}
}
