package provider

import (
	"context"
	"time"
)

// Jobs stores bulk jobs and finds their instances (R22). Operators and the sweeper use it. It is optional (NoJobs),
// because a client can also process instances one by one.
type Jobs interface {
	// PutJob writes a job on condition that the stored job has the same Revision, and increments j.Revision. The
	// Revision of a new job is 0. It returns ErrConflict if the condition fails. A job that has ended is deleted after
	// some days.
	PutJob(ctx context.Context, j *Job) error
	// ReadJob reads a job with strong consistency. It returns ErrNotFound if the job does not exist.
	ReadJob(ctx context.Context, id string) (Job, error)
	// ListJobs reads all jobs by descending ID, with strong consistency. An ID that is a ULID sorts by time.
	ListJobs(ctx context.Context) ([]Job, error)
	// MatchInstances returns up to most instances that match a filter, from an index that can be a second behind. from
	// is empty in the first call, and is the next of the previous call afterwards. Each call reads a bounded number of
	// instances, so found can be empty before the end. At the end, next is empty.
	MatchInstances(ctx context.Context, f Filter, from string, most int) (found []Target, next string, err error)
}

// Operation is the operation of a job.
type Operation string

// The operations of jobs.
const (
	OperationPurge     Operation = "purge"
	OperationCancel    Operation = "cancel"
	OperationTerminate Operation = "terminate"
)

// JobState is the state of a job.
type JobState string

// The states of jobs.
const (
	// JobRunning is the state of a job that has not ended.
	JobRunning JobState = "Running"
	// JobCompleted is the state of a job that has processed all matched instances.
	JobCompleted JobState = "Completed"
	// JobCancelled is the state of a job that was cancelled. Changes to processed instances remain.
	JobCancelled JobState = "Cancelled"
)

// Filter selects instances that match all non-zero fields.
type Filter struct {
	Orchestration string            `json:"name,omitempty"`     // name of the orchestration
	Statuses      []RuntimeStatus   `json:"statuses,omitempty"` // any of these statuses
	Version       string            `json:"version,omitempty"`
	ParentID      string            `json:"parent,omitempty"` // ID of the parent that waits for the instance
	Tags          map[string]string `json:"tags,omitempty"`   // all of these tags with these values
	StartedAfter  time.Time         `json:"startedAfter,omitzero"`
	StartedBefore time.Time         `json:"startedBefore,omitzero"`
	UpdatedBefore time.Time         `json:"updatedBefore,omitzero"` // the instance has ended before this time
}

// Target is an instance that a job matched. CreatedAt identifies the incarnation.
type Target struct {
	InstanceID string    `json:"instanceId"`
	CreatedAt  time.Time `json:"createdAt"`
	// Tries is the number of failed attempts.
	Tries int `json:"tries,omitempty"`
}

// Job is a bulk job. It matches instances that were started before the job.
type Job struct {
	ID        string    `json:"id"`
	Operation Operation `json:"operation"`
	Filter    Filter    `json:"filter"`
	Force     bool      `json:"force,omitempty"`   // a purge includes instances that have not ended
	Message   string    `json:"message,omitempty"` // reason of a cancel or terminate
	// RequestedBy is the caller that requested the job, or empty.
	RequestedBy string    `json:"requestedBy,omitempty"`
	State       JobState  `json:"state"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`

	// Matched is the number of matched instances. Done is the number of processed instances. Skipped is the number of
	// instances that had not ended, for a purge without force. Failed is the number of instances that failed. Errors
	// contains the first errors of failed instances and of matching.
	Matched int64    `json:"matched"`
	Done    int64    `json:"done"`
	Skipped int64    `json:"skipped"`
	Failed  int64    `json:"failed"`
	Errors  []string `json:"errors,omitempty"`

	// Batch contains the matched instances that are not yet processed. Next is the cursor of MatchInstances.
	// MatchingDone is true if all matching instances were found.
	Batch        []Target `json:"batch,omitempty"`
	Next         string   `json:"next,omitempty"`
	MatchingDone bool     `json:"atEnd,omitempty"`
	Revision     int64    `json:"-"`
}

// Ended reports whether the job has ended.
func (j *Job) Ended() bool { return j.State != JobRunning }
