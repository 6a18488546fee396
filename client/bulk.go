package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/provider"
)

// Job is work on many instances in the background. The HTTP API has a form of its own for it (httpapi.Job).
type Job = provider.Job

// Filter selects instances, by all of its fields that are not zero.
type Filter = provider.Filter

// The operations of Bulk.
const (
	OperationPurge     = provider.OperationPurge
	OperationCancel    = provider.OperationCancel
	OperationTerminate = provider.OperationTerminate
)

// Bulk is an operation on many instances.
type Bulk struct {
	Operation provider.Operation
	// Filter must select by something, unless All is set. Without Statuses a purge takes instances that are over, and
	// with Force all; a cancel or terminate takes those that are not over.
	Filter Filter
	All    bool
	// Force purges instances that are not over too, as the option of Purge does.
	Force bool
	// Message is the reason for a cancel or terminate, of at most 1 KiB.
	Message string
}

const (
	fieldOperation = "operation"
	fieldStatuses  = "statuses"
)

// maxJobs bounds how many jobs may run at once.
const maxJobs = 100

// Bulk makes the hub apply an operation, in the background, to each instance that a filter selects now, of those
// started before now; it begins within minutes. What matches once is dealt with even if it has changed by then, but
// another life of an id is not. Job returns the progress, and CancelJob stops it. The job goes on after any failure of
// the hub's functions. Bad input is a *provider.FieldError.
func (c *Client) Bulk(ctx context.Context, b Bulk) (Job, error) {
	j, err := c.newJob(b)
	if err != nil {
		return Job{}, fmt.Errorf("client: bulk: %w", err)
	}
	j.RequestedBy = c.caller(ctx)
	if err := c.call(ctx, callBulk, "", "", func(ctx context.Context) error { return c.putJob(ctx, &j) }); err != nil {
		return Job{}, fmt.Errorf("client: bulk: %w", err)
	}
	return j, nil
}

// putJob adds a job to those that run.
func (c *Client) putJob(ctx context.Context, j *Job) error {
	jobs, err := c.hub.ListJobs(ctx)
	if err != nil {
		return err
	}
	if len(slices.DeleteFunc(jobs, func(j Job) bool { return j.Over() })) >= maxJobs {
		return &provider.FieldError{Field: fieldOperation, Problem: fmt.Sprintf("comes on top of %d jobs that run: wait, or cancel some", maxJobs)}
	}
	return c.hub.PutJob(ctx, j)
}

// Preview is what a Bulk would match.
type Preview struct {
	Matched int64    `json:"matched"`
	Sample  []string `json:"sample"` // ids of the first matches
	// StartedBefore is the time by the hub's clock up to which instances are counted. As the filter's StartedBefore it has a
	// Bulk leave out what starts after the preview.
	StartedBefore time.Time `json:"startedBefore"`
	// Complete is false when there was no time to read all instances: Matched then counts the matches up to there.
	Complete bool `json:"complete"`
}

const (
	previewSample = 10
	previewPage   = 1000
	previewTime   = 20 * time.Second
)

// BulkPreview counts what Bulk would match, and changes nothing. It searches for at most 20 s.
func (c *Client) BulkPreview(ctx context.Context, b Bulk) (Preview, error) {
	p := Preview{Sample: []string{}}
	j, err := c.newJob(b)
	if err != nil {
		return p, fmt.Errorf("client: bulk: %w", err)
	}
	p.StartedBefore = j.Filter.StartedBefore
	for began := c.now(); c.now().Sub(began) < previewTime; {
		found, next, err := c.hub.MatchInstances(ctx, j.Filter, j.Next, previewPage)
		if err != nil {
			return p, fmt.Errorf("client: bulk: %w", err)
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

// newJob checks a bulk, and makes its job.
func (c *Client) newJob(b Bulk) (Job, error) {
	now := c.now().UTC().Truncate(time.Millisecond)
	f, err := b.filter(now)
	if err != nil {
		return Job{}, err
	}
	if err := checkText(fieldMessage, b.Message, 0, MaxMessageBytes); err != nil {
		return Job{}, err
	}
	if b.Operation == OperationPurge && b.Message != "" {
		return Job{}, &provider.FieldError{Field: fieldMessage, Problem: "is for a cancel or terminate: nobody is left to read it"}
	}
	return Job{
		ID: ulid.MustNew(ulid.Timestamp(now), rand.Reader).String(), Operation: b.Operation, Filter: f, Force: b.Force, Message: b.Message,
		State: provider.JobRunning, CreatedAt: now, UpdatedAt: now,
	}, nil
}

// terminal and living are the statuses that an operation applies to where none is given.
var (
	terminal = []RuntimeStatus{StatusCompleted, StatusFailed, StatusCancelled, StatusTerminated}
	living   = []RuntimeStatus{StatusPending, StatusRunning, StatusCancelling, StatusBlocked, StatusPaused}
)

// filter checks the filter, and completes it.
func (b *Bulk) filter(now time.Time) (Filter, error) {
	f := b.Filter
	may, err := b.statuses()
	if err != nil {
		return f, err
	}

	if selectsNothing(&f) != b.All {
		return f, &provider.FieldError{Field: "all", Problem: "is to be given where nothing else selects, and only there: what is left out by accident must not mean every instance"}
	}
	for _, s := range f.Statuses {
		if wrong := statusProblem(s); wrong != "" {
			return f, &provider.FieldError{Field: fieldStatuses, Problem: wrong}
		}
		if !slices.Contains(may, s) {
			return f, &provider.FieldError{Field: fieldStatuses, Problem: fmt.Sprintf("%s is not what a %s is for%s", s, b.Operation, map[bool]string{true: " without force"}[b.Operation == OperationPurge])}
		}
	}

	if len(f.Statuses) == 0 {
		f.Statuses = may
	}
	if f.StartedBefore.IsZero() || f.StartedBefore.After(now) {
		f.StartedBefore = now
	}
	if !f.StartedAfter.Before(f.StartedBefore) {
		return f, &provider.FieldError{Field: "startedAfter", Problem: "leaves no time before startedBefore, or before now: nothing is selected"}
	}
	return f, checkSelection(f.Name, f.Version, f.Parent, f.Tags)
}

// statuses returns the statuses that the operation applies to.
func (b *Bulk) statuses() ([]RuntimeStatus, error) {
	switch {
	case b.Operation == OperationPurge && b.Force:
		return slices.Concat(terminal, living), nil
	case b.Operation == OperationPurge:
		return terminal, nil
	case b.Operation != OperationCancel && b.Operation != OperationTerminate:
		return nil, &provider.FieldError{Field: fieldOperation, Problem: fmt.Sprintf("%q is none of %s, %s and %s", provider.Echo(b.Operation), OperationPurge, OperationCancel, OperationTerminate)}
	case b.Force:
		return nil, &provider.FieldError{Field: "force", Problem: "is for a purge"}
	default:
		return living, nil
	}
}

// selectsNothing reports whether a filter has no condition.
func selectsNothing(f *Filter) bool {
	return f.Name == "" && f.Version == "" && f.Parent == "" && len(f.Statuses) == 0 && len(f.Tags) == 0 && f.StartedAfter.IsZero() && f.StartedBefore.IsZero() && f.UpdatedBefore.IsZero()
}

// Jobs yields the hub's jobs, newest first: those that run, and those that have ended in the last seven days. It reads them
// before the first one, and ends with the first error.
func (c *Client) Jobs(ctx context.Context) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		jobs, err := c.hub.ListJobs(ctx)
		if err != nil {
			yield(Job{}, fmt.Errorf("client: jobs: %w", err))
			return
		}
		for i := range jobs {
			if !yield(jobs[i], nil) {
				return
			}
		}
	}
}

// Job reads a job's state and progress. It returns ErrNotFound when there is none.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	err := checkText("jobId", id, 1, MaxIdempotencyKeyBytes)
	var j Job
	if err == nil {
		j, err = c.hub.ReadJob(ctx, id)
	}
	if err != nil {
		return Job{}, fmt.Errorf("client: job: %w", err)
	}
	return j, nil
}

// cancelTries bounds how often the write of a job's progress may conflict with its cancel.
const cancelTries = 10

// CancelJob stops a job. What the job has done stays done, and up to 100 instances that it is dealing with may still be
// changed. A job that has ended stays as it is. It returns ErrNotFound when there is none.
func (c *Client) CancelJob(ctx context.Context, id string) (j Job, err error) {
	err = c.call(ctx, callCancelJob, "", "", func(ctx context.Context) (err error) {
		j, err = c.cancelJob(ctx, id)
		return err
	})
	return j, err
}

func (c *Client) cancelJob(ctx context.Context, id string) (Job, error) {
	for try := 1; ; try++ {
		j, err := c.Job(ctx, id)
		if err != nil || j.Over() {
			return j, err
		}

		j.State = provider.JobCancelled
		j.UpdatedAt = c.now().UTC().Truncate(time.Millisecond)
		if err = c.hub.PutJob(ctx, &j); err == nil {
			return j, nil
		}
		if !errors.Is(err, provider.ErrConflict) || try == cancelTries {
			return j, fmt.Errorf("client: cancel job: %w", err)
		}
	}
}
