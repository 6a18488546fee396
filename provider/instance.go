package provider

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/history"
)

// RuntimeStatus is the status of an instance. Its method Terminal reports whether the instance has ended.
type RuntimeStatus = history.RuntimeStatus

// The statuses of an instance. Package history describes them.
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

// Instance is the state of an instance without its history.
type Instance struct {
	InstanceID      string
	ExecutionID     string
	ExecutionNumber int64
	// Name is the name of the orchestration.
	Name string
	// Version is the version that the start requested. If it is empty, the first turn selects the highest registered
	// version.
	Version   string
	Status    RuntimeStatus
	StartID   string
	CreatedAt time.Time
	UpdatedAt time.Time
	// StartAt is the time of a delayed start, or zero.
	StartAt time.Time
	// Parent is the execution that waits for the instance, or nil.
	Parent       *history.Parent
	Tags         map[string]string
	CustomStatus json.RawMessage
	// Diagnosis is the reason why the instance is blocked. It is nil if it is not blocked, and in lists of other
	// statuses.
	Diagnosis *history.Failure
	// BlockedBy is the build in which the instance is blocked. It is set together with Diagnosis.
	BlockedBy string
	// Paused describes the pause. It is nil if the instance is not paused, and in lists of other statuses.
	Paused *history.Pause
	// RequestedBy is the caller that started the instance. It is empty if that caller is not known, and in lists.
	RequestedBy string
	// PurgedAt is the time when the previous instance with the same ID was purged. It is zero if there was none, and in
	// lists.
	PurgedAt time.Time
}

// Execution is one generation of an instance. Continue-as-new starts the next one.
type Execution struct {
	ExecutionID string
	// Number counts the executions of an instance from 1.
	Number    int64
	StartedAt time.Time
}

// Start is a request for a new instance.
type Start struct {
	InstanceID string
	Name       string
	Version    string
	Input      history.Payload
	// StartID identifies the start, so that a repetition is not another start of the same instance ID (R10). The ID of
	// the first execution derives from it.
	StartID string
	// ExecutionID is the ID of the first execution, from NewExecutionID, if the client has stored payloads for it. If
	// it is empty, the provider creates one.
	ExecutionID string
	// StartAt is the time at which the first turn may run. Zero means immediately. Messages that arrive earlier wait
	// until then.
	StartAt time.Time
	Tags    map[string]string
	// RequestedBy is the caller that requests the start, or empty. It is cut to history.MaxRequesterBytes.
	RequestedBy string
	// TraceParent is the trace context of the start, or empty.
	TraceParent history.TraceParent
	// RestartFrom is a history that the instance continues instead of starting with Input, or nil.
	RestartFrom *RestartSource
	// CheckFirst is true if the ID is probably in use. The provider then reads before it writes, which saves the writes if
	// the ID is in use and costs a read if it is not.
	CheckFirst bool
}

// RestartSource is a history that a start copies from another instance (R30).
type RestartSource struct {
	history.ExecutionRef

	// Events are the events of the execution from its start to the event where it is cut (history.CheckRestartPoint).
	Events []history.Event
}

// InitialEvents returns the initial history of an instance that copies the past.
func (p *RestartSource) InitialEvents(in *Instance, trace history.TraceParent) []history.Event {
	t := history.Restart{
		From: p.ExecutionRef, To: history.ExecutionRef{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID}, StartID: in.StartID, Tags: in.Tags,
		RequestedBy: in.RequestedBy, At: in.CreatedAt, TraceParent: trace,
	}
	return t.History(p.Events)
}

// ListQuery selects instances for a list, newest first. With StatusBlocked, StatusPaused and StatusDeleting, instances are
// sorted by their last change of status. Zero fields select all instances.
type ListQuery struct {
	Status RuntimeStatus
	// Name is the name of the orchestration.
	Name    string
	Version string
	// Tags are tags that an instance must have, with the same values.
	Tags map[string]string
	// Parent is the ID of the instance that waits for the selected instances.
	Parent string
	// StartedAfter selects instances that were started at this time or later, and StartedBefore instances that were
	// started earlier. Both have a resolution of a millisecond.
	StartedAfter  time.Time
	StartedBefore time.Time
	// Limit is the maximum number of instances per page, up to 1,000. The default is 100.
	Limit int
	// Cursor is the NextCursor of the previous page of the same query.
	Cursor string
}

// Selects reports whether the query selects an instance.
func (q *ListQuery) Selects(in *Instance) bool {
	created := in.CreatedAt.Truncate(time.Millisecond)
	return (q.Status == "" || in.Status == q.Status) && (q.Name == "" || in.Name == q.Name) && (q.Version == "" || in.Version == q.Version) &&
		(q.Parent == "" || in.Parent != nil && in.Parent.InstanceID == q.Parent) && HasTags(in.Tags, q.Tags) &&
		!created.Before(q.StartedAfter.Truncate(time.Millisecond)) && (q.StartedBefore.IsZero() || created.Before(q.StartedBefore.Truncate(time.Millisecond)))
}

// HasTags reports whether tags contains all wanted tags with the same values.
func HasTags(tags, want map[string]string) bool {
	for k, v := range want {
		if got, there := tags[k]; !there || got != v {
			return false
		}
	}
	return true
}

// Page is one page of a list. A page reads a bounded amount, so it can contain fewer instances than the limit, or none,
// before the list ends.
type Page struct {
	Instances []Instance
	// NextCursor is the cursor of the next page. It is empty if, and only if, the list has ended.
	NextCursor string
}

// Build lists the orchestrations and activities of a deployed build.
type Build struct {
	ID string `json:"id"`
	// Orchestrations contains the versions of each orchestration by name.
	Orchestrations map[string][]string `json:"orchestrations"`
	Activities     []string            `json:"activities"`
	// FirstReportedAt is the time of the build's first report, if it is known. LastReportedAt is the time of its last
	// report. PutBuild ignores both.
	FirstReportedAt time.Time `json:"-"`
	LastReportedAt  time.Time `json:"-"`
}
