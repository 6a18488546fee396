package provider

import (
	"context"
	"time"
)

// Jobs is what works on many instances in the background (R22).
type Jobs interface {
	// PutJob writes a job, on the condition that the one that is stored has its Revision, and counts that up in j: 0 where there is none.
	// ErrConflict when somebody else has written it meanwhile. One that has ended is forgotten after some days.
	PutJob(ctx context.Context, j *Job) error
	// ReadJob reads a job, strongly consistent. ErrNotFound when there is none.
	ReadJob(ctx context.Context, id string) (Job, error)
	// ListJobs reads all jobs, the newest first, strongly consistent.
	ListJobs(ctx context.Context) ([]Job, error)
	// MatchInstances reads on in what a filter selects, from an index that may be a second behind: at most so many, from after where the call
	// with this next ended, and at first from "". It bounds what it reads, so that it may find none and not be at the end, which is when next is "".
	MatchInstances(ctx context.Context, f Filter, from string, most int) (found []Target, next string, err error)
	// DeleteLife is DeleteInstance of the life that a start began. Another life of the id, or none, is nothing: that one is deleted.
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
	JobRunning   JobState = "Running"   // or about to
	JobCompleted JobState = "Completed" // with all that it matched
	JobCancelled JobState = "Cancelled" // before that; what it had done by then is done
)

// Filter selects instances. Zero fields select all; an instance is selected by all the others.
type Filter struct {
	Name          string            `json:"name,omitempty"`     // of the orchestration
	Statuses      []RuntimeStatus   `json:"statuses,omitempty"` // any of them
	Tags          map[string]string `json:"tags,omitempty"`     // all of them, with these values
	StartedAfter  time.Time         `json:"startedAfter,omitzero"`
	StartedBefore time.Time         `json:"startedBefore,omitzero"`
	UpdatedBefore time.Time         `json:"updatedBefore,omitzero"` // of one that is over: ended before
}

// Target is an instance that a job has matched: the life of its id that began then.
type Target struct {
	InstanceID string    `json:"instanceId"`
	CreatedAt  time.Time `json:"createdAt"`
	// Tries is how often it was dealt with in vain.
	Tries int `json:"tries,omitempty"`
}

// Job is work on the instances that a filter selects, of those that were started before it.
type Job struct {
	ID        string    `json:"id"`
	Operation Operation `json:"operation"`
	Filter    Filter    `json:"filter"`
	Force     bool      `json:"force,omitempty"`   // of a purge: also what is not over
	Message   string    `json:"message,omitempty"` // of a cancel or terminate: why
	// RequestedBy is who has asked for it; empty where nobody knows.
	RequestedBy string    `json:"requestedBy,omitempty"`
	State       JobState  `json:"state"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`

	// Of what it Matched so many are Done, Skipped (a purge without force: not over) or have Failed. Errors says why of the first, and what
	// has kept it from matching more.
	Matched int64    `json:"matched"`
	Done    int64    `json:"done"`
	Skipped int64    `json:"skipped"`
	Failed  int64    `json:"failed"`
	Errors  []string `json:"errors,omitempty"`

	// Batch is what was matched and is not yet known to be done; Next is where matching goes on, AtEnd that there is no more.
	Batch    []Target `json:"batch,omitempty"`
	Next     string   `json:"next,omitempty"`
	AtEnd    bool     `json:"atEnd,omitempty"`
	Revision int64    `json:"-"`
}

// Over reports whether nothing more is done.
func (j *Job) Over() bool { return j.State != JobRunning }
