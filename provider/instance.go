package provider

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/perdure/perdure/history"
)

// Instances starts, reads, lists and deletes instances, and sends messages to them. Clients use it.
type Instances interface {
	// StartOrchestration creates the instance and its first execution atomically, and wakes the instance immediately or
	// at StartAt. A repeated call with the same StartID only wakes the instance again (R11). StartOrchestration returns
	// ErrAlreadyExists and the existing instance if another start uses the ID, even if that instance has ended. It
	// returns ErrPurged if the instance of the same StartID was purged, and ErrUnknownOrchestration if no deployed
	// build registers the orchestration. It checks the orchestration before the ID.
	StartOrchestration(ctx context.Context, s Start) (Instance, error)
	// EnqueueForOrchestrator sends messages to the inboxes of their instances. The messages of one instance stay in
	// order. A message is never lost, but it can arrive twice, the second time possibly after later messages. If only
	// some messages were accepted, the error reports it, and the caller can repeat the call with all messages. Before
	// it sends messages that interrupt (Message.Interrupts), it records the interruption for ReadInterruption on a
	// best-effort basis.
	EnqueueForOrchestrator(ctx context.Context, ms ...Message) error
	// ReadInstance reads an instance with strong consistency. It returns ErrNotFound if the instance does not exist.
	ReadInstance(ctx context.Context, instanceID string) (Instance, error)
	// ReadTerminalEvent reads the terminal event of an execution, with its output or error. It returns ErrNotFound if
	// the execution has not ended.
	ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error)
	// ReadHistory yields the events of an execution with IDs above after, in order. It keeps the events of only a few
	// turns in memory. It returns ErrNotFound if the instance has no such execution, and ErrCorrupt at the first event
	// that cannot be read. It replaces references to documents by the documents, up to documents.MaxResolvedBytes bytes
	// per event. It does not replace references beyond this limit and references to erased documents.
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	// ListExecutions yields the executions of an instance, the current one first. It returns ErrNotFound if the
	// instance does not exist.
	ListExecutions(ctx context.Context, instanceID string) iter.Seq2[Execution, error]
	// ListInstances reads a page of instances, newest first, from an index that can be a second behind. A page can be
	// short or empty although it is not the last page. The index does not contain the StartID and the diagnosis, so
	// these fields can be empty.
	ListInstances(ctx context.Context, q ListQuery) (Page, error)
	// ReadActivityRecords yields the activity records of an execution by activity ID, with strong consistency. Most
	// activities have no record. An unknown execution has no records.
	ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[ActivityRecord, error]
	// ReadRetries yields the attempt records of an execution by activity ID, with strong consistency. An activity that
	// was retried has a record even after it has ended. Only the history shows which activities are open.
	ReadRetries(ctx context.Context, executionID string) iter.Seq2[ActivityRetry, error]
	// ReadUpdate reads the result of an update with strong consistency. It returns ErrNotFound if the result does not
	// exist yet, or was deleted after UpdateResultRetention. The result can belong to an earlier incarnation of the ID
	// (UpdateResult.StartID).
	ReadUpdate(ctx context.Context, instanceID, updateID string) (UpdateResult, error)
	// DeleteInstance deletes an instance that has ended or, with force, any instance. A running instance ends first.
	// Its activities, timers and children are cancelled, and its parent receives its outcome. The deletion records the
	// starts that must not be repeated. It also prevents events for this instance from reaching a later instance with
	// the same ID. Repeat the call until it succeeds. Each call continues the deletion, and the status is
	// StatusDeleting until the deletion is complete. DeleteInstance returns ErrNotFound if the instance does not exist,
	// and ErrNotEnded if the instance has not ended and force is false (R17).
	DeleteInstance(ctx context.Context, instanceID string, force bool) error
	// DeleteIncarnation is like DeleteInstance for the incarnation that the given start created. It does nothing if the
	// instance does not exist or is another incarnation.
	DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error
}

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
	// Diagnosis is the reason why the instance is blocked. It is nil if the instance is not blocked, and in lists of
	// other statuses.
	Diagnosis *history.Failure
	// BlockedBy is the build that blocked the instance. It is set together with Diagnosis.
	BlockedBy string
	// Paused describes the pause. It is nil if the instance is not paused, and in lists of other statuses.
	Paused *history.Pause
	// Notes are the newest notes, oldest first. Lists do not set them.
	Notes []Note
	// RequestedBy is the caller that started the instance. It is empty if the caller is not known, and in lists.
	RequestedBy string
	// PurgedAt is the time at which the previous instance with the same ID was purged. It is zero if no such instance
	// existed, and in lists.
	PurgedAt time.Time
}

// Execution is one run of an instance's code. Continue-as-new starts the next execution. Its JSON is that of the HTTP
// API.
type Execution struct {
	ExecutionID string `json:"executionId"`
	// Number is the number of the execution in its instance, from 1.
	Number    int64     `json:"number"`
	StartedAt time.Time `json:"startedAt"`
}

// Tail is a position in the history of an execution, for client.TailReader: the ID of the last event that was read, and
// the sequence of the segment to read next, or 0 if it is not known.
type Tail struct{ Event, Segment int64 }

// Start is a request for a new instance.
type Start struct {
	InstanceID string
	Name       string
	Version    string
	Input      history.Payload
	// StartID identifies the start, so that a repeated start does not conflict with the first one (R10). The ID of the
	// first execution is derived from it.
	StartID string
	// ExecutionID is the ID of the first execution, from NewExecutionID, if the client has stored payloads for that
	// execution. If it is empty, the provider creates an ID.
	ExecutionID string
	// StartAt is the time at which the first turn may run. Zero means immediately. Messages that arrive earlier wait
	// until then.
	StartAt time.Time
	Tags    map[string]string
	// RequestedBy is the caller that requests the start, or empty. It is truncated to history.MaxRequesterBytes.
	RequestedBy string
	// TraceParent is the trace context of the start, or empty.
	TraceParent history.TraceParent
	// RestartFrom is a history that the instance continues instead of starting with Input, or nil.
	RestartFrom *RestartSource
	// CheckFirst is true if the ID is probably in use. The provider then reads before it writes. This saves the writes
	// if the ID is in use, and costs a read otherwise.
	CheckFirst bool
}

// RestartSource is a history that a start copies from another instance (R30).
type RestartSource struct {
	history.ExecutionRef

	// Events are the events of the execution from its start to the event of the restart (history.CheckRestartPoint).
	Events []history.Event
}

// InitialEvents returns the initial history of an instance that copies p.
func (p *RestartSource) InitialEvents(in *Instance, trace history.TraceParent) []history.Event {
	t := history.Restart{
		From: p.ExecutionRef, To: history.ExecutionRef{
			InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
		}, StartID: in.StartID, Tags: in.Tags,
		RequestedBy: in.RequestedBy, At: in.CreatedAt, TraceParent: trace,
	}
	return t.History(p.Events)
}

// ListQuery selects instances for a list, newest first. With StatusBlocked, StatusPaused and StatusDeleting, instances
// are sorted by their last change of status. Zero fields select all instances.
type ListQuery struct {
	Status RuntimeStatus
	// Name is the name of the orchestration.
	Name    string
	Version string
	// Tags are tags that an instance must have, with the same values.
	Tags map[string]string
	// Parent is the ID of the instance that waits for the selected instances.
	Parent string
	// StartedAfter selects instances that were started at this time or later. StartedBefore selects instances that were
	// started earlier than this time. Both have a resolution of a millisecond.
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
	return (q.Status == "" || in.Status == q.Status) && (q.Name == "" || in.Name == q.Name) &&
		(q.Version == "" || in.Version == q.Version) &&
		(q.Parent == "" || in.Parent != nil && in.Parent.InstanceID == q.Parent) && HasTags(in.Tags, q.Tags) &&
		!created.Before(q.StartedAfter.Truncate(time.Millisecond)) &&
		(q.StartedBefore.IsZero() || created.Before(q.StartedBefore.Truncate(time.Millisecond)))
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

// Page is one page of a list. Each page reads a bounded number of instances, so a page before the end of the list can
// be short or empty.
type Page struct {
	Instances []Instance
	// NextCursor is the cursor of the next page. It is empty if and only if the list has ended.
	NextCursor string
}

// BuildReportInterval is the maximum age of a build's report that makes an equal report superfluous
// (Orchestrations.PutBuild). Reports of two builds within the interval may be stored in the wrong order. It is shorter
// than a deployment, so that a build that is deployed again becomes the last one that reported.
const BuildReportInterval = 5 * time.Second

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
