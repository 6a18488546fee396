package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/provider"
)

// Job is work on many instances in the background. Its JSON is that of the HTTP API, but for how it stands in the middle.
type Job = provider.Job

// Filter selects instances, by all of its fields that are not zero.
type Filter = provider.Filter

// The operations of Bulk.
const (
	OperationPurge     = provider.OperationPurge
	OperationCancel    = provider.OperationCancel
	OperationTerminate = provider.OperationTerminate
)

// Bulk is what is to be done with many instances.
type Bulk struct {
	Operation provider.Operation
	// Filter must select by something, unless All is given. Without Statuses a purge takes what is over, or with Force anything; a cancel or
	// terminate what is not.
	Filter Filter
	All    bool
	// Force purges what is not over, too, as the option of Purge does.
	Force bool
	// Message of a cancel or terminate, of at most 1 KiB, says why.
	Message string
}

const fieldOperation = "operation"

// maxJobs bounds how many jobs may run at once.
const maxJobs = 100

// Bulk has an operation done with each instance that a filter selects now, of those started before now, in the background: the hub begins
// within minutes. What matches once is dealt with though it may have changed by then; another life of an id is not. Job tells how
// far it is, CancelJob stops it. It goes on after any failure of the hub's functions. Bad input is a *provider.FieldError.
func (c *Client) Bulk(ctx context.Context, b Bulk) (Job, error) {
	j, err := c.newJob(b)
	if err != nil {
		return Job{}, fmt.Errorf("client: bulk: %w", err)
	}
	j.RequestedBy = c.caller(ctx)
	jobs, err := c.provider.ListJobs(ctx)
	if err == nil && len(slices.DeleteFunc(jobs, func(j Job) bool { return j.Over() })) >= maxJobs {
		err = &provider.FieldError{Field: fieldOperation, Problem: fmt.Sprintf("comes on top of %d jobs that run: wait, or cancel some", maxJobs)}
	}
	if err == nil {
		err = c.provider.PutJob(ctx, &j)
	}
	if err != nil {
		return Job{}, fmt.Errorf("client: bulk: %w", err)
	}
	return j, nil
}

// Preview is what a Bulk would match.
type Preview struct {
	Matched int64    `json:"matched"`
	Sample  []string `json:"sample"` // ids of the first
	// Complete is false when there was no time to look at all instances: Matched are those up to there.
	Complete bool `json:"complete"`
}

const (
	previewSample = 10
	previewPage   = 1000
	previewTime   = 20 * time.Second
)

// BulkPreview counts what Bulk would match, and changes nothing. It looks for 20 s at the most.
func (c *Client) BulkPreview(ctx context.Context, b Bulk) (Preview, error) {
	p := Preview{Sample: []string{}}
	j, err := c.newJob(b)
	if err != nil {
		return p, fmt.Errorf("client: bulk: %w", err)
	}
	for began := c.now(); c.now().Sub(began) < previewTime; {
		found, next, err := c.provider.MatchInstances(ctx, j.Filter, j.Next, previewPage)
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

// terminal and living are what an operation is for where no status is given.
var (
	terminal = []RuntimeStatus{StatusCompleted, StatusFailed, StatusCancelled, StatusTerminated}
	living   = []RuntimeStatus{StatusPending, StatusRunning, StatusCancelling, StatusBlocked}
)

// filter checks the filter, and makes it whole.
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
		if err := checkQuery(Query{Status: s}); err != nil {
			return f, err
		}
		if !slices.Contains(may, s) {
			return f, &provider.FieldError{Field: "status", Problem: fmt.Sprintf("%s is not what a %s is for%s", s, b.Operation, map[bool]string{true: " without force"}[b.Operation == OperationPurge])}
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
	return f, errors.Join(checkText("name", f.Name, 0, MaxOrchestrationBytes), provider.CheckTags(f.Tags))
}

// statuses are those that the operation is for.
func (b *Bulk) statuses() ([]RuntimeStatus, error) {
	switch {
	case b.Operation == OperationPurge && b.Force:
		return slices.Concat(terminal, living), nil
	case b.Operation == OperationPurge:
		return terminal, nil
	case b.Operation != OperationCancel && b.Operation != OperationTerminate:
		return nil, &provider.FieldError{Field: fieldOperation, Problem: fmt.Sprintf("%q is none of %s, %s and %s", echo(b.Operation), OperationPurge, OperationCancel, OperationTerminate)}
	case b.Force:
		return nil, &provider.FieldError{Field: "force", Problem: "is for a purge"}
	default:
		return living, nil
	}
}

// selectsNothing reports whether a filter leaves out nothing.
func selectsNothing(f *Filter) bool {
	return f.Name == "" && len(f.Statuses) == 0 && len(f.Tags) == 0 && f.StartedAfter.IsZero() && f.StartedBefore.IsZero() && f.UpdatedBefore.IsZero()
}

// Jobs lists the hub's jobs, the newest first: those that run, and those that have ended in the last seven days.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	jobs, err := c.provider.ListJobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: jobs: %w", err)
	}
	return jobs, nil
}

// Job reads how a job stands. ErrNotFound when there is none.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	err := checkText("jobId", id, 1, MaxIdempotencyKeyBytes)
	var j Job
	if err == nil {
		j, err = c.provider.ReadJob(ctx, id)
	}
	if err != nil {
		return Job{}, fmt.Errorf("client: job: %w", err)
	}
	return j, nil
}

// cancelTries bounds how often a job's progress may come in between.
const cancelTries = 10

// CancelJob stops a job. What it has done is done; of what it is at, up to 100 instances may still be dealt with. One that has ended
// stays as it is. ErrNotFound when there is none.
func (c *Client) CancelJob(ctx context.Context, id string) (Job, error) {
	for try := 1; ; try++ {
		j, err := c.Job(ctx, id)
		if err != nil || j.Over() {
			return j, err
		}
		j.State, j.UpdatedAt = provider.JobCancelled, c.now().UTC().Truncate(time.Millisecond)
		if err = c.provider.PutJob(ctx, &j); err == nil {
			return j, nil
		}
		if !errors.Is(err, provider.ErrConflict) || try == cancelTries {
			return j, fmt.Errorf("client: cancel job: %w", err)
		}
	}
}
