package provider

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/history"
)

// RuntimeStatus is where an instance is in its life.
type RuntimeStatus string

// The statuses of an instance.
const (
	// StatusPending: started, and no turn has run.
	StatusPending RuntimeStatus = "Pending"
	// StatusRunning: at least one turn has run; usually it waits for something.
	StatusRunning RuntimeStatus = "Running"
	// StatusCompleted: ended with an output.
	StatusCompleted RuntimeStatus = "Completed"
	// StatusFailed: ended with an error.
	StatusFailed RuntimeStatus = "Failed"
	// StatusTerminated: ended from outside, without running its code.
	StatusTerminated RuntimeStatus = "Terminated"
	// StatusCancelling: asked to end, and its code is unwinding.
	StatusCancelling RuntimeStatus = "Cancelling"
	// StatusCancelled: ended because it was asked to.
	StatusCancelled RuntimeStatus = "Cancelled"
	// StatusBlocked: its code cannot go on with its history, or is in no deployed build. What arrives is kept. It goes on by
	// itself once a build is deployed whose code can.
	StatusBlocked RuntimeStatus = "Blocked"
	// StatusDeleting: over, and being deleted. Its history may be gone in part; its id is free when the deletion is finished.
	StatusDeleting RuntimeStatus = "Deleting"
)

// Terminal reports whether the instance is over.
func (s RuntimeStatus) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled || s == StatusTerminated || s == StatusDeleting
}

// StatusAfter is the status an instance has once its execution ended with an event of this kind; ok is false for events that end nothing.
func StatusAfter(k history.Kind) (s RuntimeStatus, ok bool) {
	switch k {
	case history.OrchestrationCompleted:
		return StatusCompleted, true
	case history.OrchestrationFailed:
		return StatusFailed, true
	case history.OrchestrationCancelled:
		return StatusCancelled, true
	case history.OrchestrationTerminated:
		return StatusTerminated, true
	default:
		return "", false
	}
}

// Instance is what is known of an instance without reading its history.
type Instance struct {
	InstanceID      string
	ExecutionID     string
	ExecutionNumber int64
	Name            string // of the orchestration
	Version         string // as asked for at the start; empty: the highest registered at the first turn
	Status          RuntimeStatus
	StartID         string
	CreatedAt       time.Time
	UpdatedAt       time.Time
	StartAt         time.Time       // zero: at once
	Parent          *history.Parent // nil: nobody waits for it
	Tags            map[string]string
	CustomStatus    json.RawMessage
	Diagnosis       *history.Failure // why it is blocked; nil when it is not, and in lists of other statuses
	BlockedBy       string           // the build that it is blocked in; as Diagnosis
	RequestedBy     string           // who started it, as in history; empty where nobody knows, and in lists
}

// Execution is one generation of an instance: continue-as-new makes the next.
type Execution struct {
	ExecutionID string
	Number      int64 // from 1
	StartedAt   time.Time
}

// Start asks for a new instance.
type Start struct {
	InstanceID string
	Name       string
	Version    string
	Input      history.Payload
	// StartID tells a repeated start from another one of the same instance id (R10). It also names the first execution.
	StartID string
	// StartAt is when the first turn may run; zero is at once. Messages that come earlier are kept for it.
	StartAt time.Time
	Tags    map[string]string
	// RequestedBy is who asks for it; empty where nobody knows. It is kept within history.MaxRequesterBytes.
	RequestedBy string
}

// Query selects instances for a list, newest first; with StatusBlocked and StatusDeleting those first whose status changed last. Zero fields select all.
type Query struct {
	Status       RuntimeStatus
	Name         string
	StartedAfter time.Time
	Limit        int    // at most this many a page; 0 is 100, more than 1,000 is refused
	Cursor       string // NextCursor of the page before, of the same query
}

// Page is one page of a list. What one page reads is bounded: where few of many instances are selected it may hold fewer than the limit, or none, and the
// list goes on all the same.
type Page struct {
	Instances  []Instance
	NextCursor string // empty: no more. It alone says that a list is over
}

// Build is what a deployed build of the user's code can run.
type Build struct {
	ID             string              `json:"id"`
	Orchestrations map[string][]string `json:"orchestrations"` // name to versions
	Activities     []string            `json:"activities"`
}
