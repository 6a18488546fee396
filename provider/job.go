package provider

import (
	"context"
	"time"
)

// Jobs is what background work on many instances needs (R22).
type Jobs interface {
	// PutJob writes a job, on the condition that the stored one has the same Revision (0 where there is none), and
	// increments j's Revision. It returns ErrConflict when another writer came first. A job that has ended is deleted
	// after some days.
	PutJob(ctx context.Context, j *Job) error
	// ReadJob reads a job, strongly consistent. It returns ErrNotFound when there is none.
	ReadJob(ctx context.Context, id string) (Job, error)
	// ListJobs reads all jobs, newest first, strongly consistent.
	ListJobs(ctx context.Context) ([]Job, error)
	// MatchInstances reads the next instances that a filter selects, most at the most, from an index that may be a
	// second behind. from is the next of the previous call, at first "". Each call reads a bounded amount, so that it
	// may find nothing before the end; the end is where next is "".
	MatchInstances(ctx context.Context, f Filter, from string, most int) (found []Target, next string, err error)
	// DeleteLife is DeleteInstance for the life that the given start began. It does nothing where the id has another
	// life or none: that life is already deleted.
	DeleteLife(ctx context.Context, instanceID, startID string, force bool) error
}

// Operation is what a job does with instances.
type Operation string

// The operations of jobs.
const (
	OperationPurge     Operation = "purge"
	OperationCancel    Operation = "cancel"
	OperationTerminate Operation = "terminate"
)

// JobState is where a job is.
type JobState string

// The states of jobs.
const (
	JobRunning   JobState = "Running"   // running, or about to
	JobCompleted JobState = "Completed" // all that it matched is dealt with
	JobCancelled JobState = "Cancelled" // ended before that; what it had done by then stays done
)

// Filter selects instances. Zero fields select all; an instance is selected when it matches every field that is set.
type Filter struct {
	Name          string            `json:"name,omitempty"`     // of the orchestration
	Statuses      []RuntimeStatus   `json:"statuses,omitempty"` // any of them
	Version       string            `json:"version,omitempty"`
	Parent        string            `json:"parent,omitempty"` // the id of the instance that waits for it
	Tags          map[string]string `json:"tags,omitempty"`   // all of them, with these values
	StartedAfter  time.Time         `json:"startedAfter,omitzero"`
	StartedBefore time.Time         `json:"startedBefore,omitzero"`
	UpdatedBefore time.Time         `json:"updatedBefore,omitzero"` // of an instance that is over: it ended before then
}

// Target is an instance that a job has matched: the life of its id that began at CreatedAt.
type Target struct {
	InstanceID string    `json:"instanceId"`
	CreatedAt  time.Time `json:"createdAt"`
	// Tries is how often dealing with it has failed.
	Tries int `json:"tries,omitempty"`
}

// Job is work on the instances that a filter selects, among those that were started before the job was.
type Job struct {
	ID        string    `json:"id"`
	Operation Operation `json:"operation"`
	Filter    Filter    `json:"filter"`
	Force     bool      `json:"force,omitempty"`   // of a purge: also instances that are not over
	Message   string    `json:"message,omitempty"` // of a cancel or terminate: the reason
	// RequestedBy is who asked for the job; empty where that is not known.
	RequestedBy string    `json:"requestedBy,omitempty"`
	State       JobState  `json:"state"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`

	// Matched counts the matched instances. Of these, Done were dealt with, Skipped were not over (a purge without
	// force), and Failed have failed. Errors has the errors of the first that failed, and whatever kept the job from
	// matching more.
	Matched int64    `json:"matched"`
	Done    int64    `json:"done"`
	Skipped int64    `json:"skipped"`
	Failed  int64    `json:"failed"`
	Errors  []string `json:"errors,omitempty"`

	// Batch holds the matched instances that are not yet known to be done. Next is where matching goes on; AtEnd
	// reports that there is no more to match.
	Batch    []Target `json:"batch,omitempty"`
	Next     string   `json:"next,omitempty"`
	AtEnd    bool     `json:"atEnd,omitempty"`
	Revision int64    `json:"-"`
}

// Over reports whether the job has nothing more to do.
func (j *Job) Over() bool { return j.State != JobRunning }
