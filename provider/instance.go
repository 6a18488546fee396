package provider

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/history"
)

// RuntimeStatus is where an instance is in its life. Terminal reports whether it is over.
type RuntimeStatus = history.RuntimeStatus

// The statuses of an instance: those of package history.
const (
	StatusPending    = history.StatusPending
	StatusRunning    = history.StatusRunning
	StatusCompleted  = history.StatusCompleted
	StatusFailed     = history.StatusFailed
	StatusTerminated = history.StatusTerminated
	StatusCancelling = history.StatusCancelling
	StatusCancelled  = history.StatusCancelled
	StatusBlocked    = history.StatusBlocked
	StatusPaused     = history.StatusPaused
	StatusDeleting   = history.StatusDeleting
)

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
	Parent          *history.Parent // nil: no instance waits for it
	Tags            map[string]string
	CustomStatus    json.RawMessage
	Diagnosis       *history.Failure // why it is blocked; nil when it is not, and in lists of other statuses
	BlockedBy       string           // the build that it is blocked in; as Diagnosis
	Paused          *history.Pause   // who paused it; nil when it is not paused, and in lists of other statuses
	RequestedBy     string           // who started it, as in history; empty where that is not known, and in lists
	PurgedAt        time.Time        // when the instance was purged that had the id before; zero where none had, and in lists
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
	// StartID distinguishes a repeated start from another start of the same instance id (R10). It also names the first
	// execution.
	StartID string
	// ExecutionID is that of the first execution, where the client has stored payloads of it: of NewExecutionID. Empty: the provider makes one.
	ExecutionID string
	// StartAt is when the first turn may run; zero is at once. Messages that arrive earlier are kept until then.
	StartAt time.Time
	Tags    map[string]string
	// RequestedBy is who asks for the start; empty where that is not known. It is cut to history.MaxRequesterBytes.
	RequestedBy string
	// TraceParent is the trace context of the start; empty where it has none.
	TraceParent history.TraceParent
	// Past is a history that the instance takes over, and goes on from, instead of beginning with Input; nil: it takes over none.
	Past *Past
	// Look says that the id is likely taken: the provider looks before it writes, which costs a read where it is free, and saves the writes where it is not.
	Look bool
}

// Past is a history that a start takes over from another instance (R30).
type Past struct {
	history.Owner

	// Events are those of the execution from its start to where it is cut (history.CheckCut).
	Events []history.Event
}

// Begin returns the history that an instance begins with which takes over the past.
func (p *Past) Begin(in *Instance, trace history.TraceParent) []history.Event {
	t := history.Takeover{
		From: p.Owner, To: history.Owner{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID}, StartID: in.StartID, Tags: in.Tags,
		RequestedBy: in.RequestedBy, At: in.CreatedAt, TraceParent: trace,
	}
	return t.Of(p.Events)
}

// Query selects instances for a list, newest first; with StatusBlocked, StatusPaused and StatusDeleting, the instances
// whose status changed last come first. Zero fields select all.
type Query struct {
	Status  RuntimeStatus
	Name    string // of the orchestration
	Version string
	Tags    map[string]string // all of them, with these values
	Parent  string            // the id of the instance that waits for it
	// StartedAfter selects instances that were started then or later, StartedBefore those that were started earlier.
	// Both count to the millisecond.
	StartedAfter  time.Time
	StartedBefore time.Time
	Limit         int    // at most this many a page; 0 is 100, more than 1,000 is refused
	Cursor        string // NextCursor of the page before, of the same query
}

// Selects reports whether the query selects an instance.
func (q *Query) Selects(in *Instance) bool {
	created := in.CreatedAt.Truncate(time.Millisecond)
	return (q.Status == "" || in.Status == q.Status) && (q.Name == "" || in.Name == q.Name) && (q.Version == "" || in.Version == q.Version) &&
		(q.Parent == "" || in.Parent != nil && in.Parent.InstanceID == q.Parent) && HasTags(in.Tags, q.Tags) &&
		!created.Before(q.StartedAfter.Truncate(time.Millisecond)) && (q.StartedBefore.IsZero() || created.Before(q.StartedBefore.Truncate(time.Millisecond)))
}

// HasTags reports whether tags hold all of the wanted ones, with their values.
func HasTags(tags, want map[string]string) bool {
	for k, v := range want {
		if got, there := tags[k]; !there || got != v {
			return false
		}
	}
	return true
}

// Page is one page of a list. A page reads a bounded amount: where few of many instances are selected it may hold fewer
// than the limit, or none, while the list goes on.
type Page struct {
	Instances  []Instance
	NextCursor string // empty: the list is over; nothing else says so
}

// Build is what a deployed build of the user's code can run.
type Build struct {
	ID             string              `json:"id"`
	Orchestrations map[string][]string `json:"orchestrations"` // name to versions
	Activities     []string            `json:"activities"`
	// Since is when it reported first, as far as that is known, and Reported when it reported last. PutBuild leaves them out.
	Since    time.Time `json:"-"`
	Reported time.Time `json:"-"`
}
