package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/instances"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
)

type whyArgs struct {
	ID        string `json:"id" jsonschema:"instance ID"`
	Execution string `json:"execution,omitempty" jsonschema:"execution ID, default the current one"`
	Limit     int    `json:"limit,omitempty" jsonschema:"maximum number of cancelled tasks, 1 to 100, default 50"`
	Cursor    string `json:"cursor,omitempty" jsonschema:"nextCursor of the previous page"`
}

// maxCauses is the number of parents, and of children, that are followed.
const maxCauses = 10

// Relations of an instance in a chain of causes.
const (
	relationInstance = "instance"
	relationParent   = "parent"
	relationChild    = "child"
)

// cause is an instance in the chain from an instance to its root cause.
type cause struct {
	Relation   string               `json:"relation"`
	InstanceID string               `json:"instanceId"`
	Status     client.RuntimeStatus `json:"status"`
	// Reason, Message, RequestedBy and At describe the request that cancelled the instance, or its child.
	Reason      string    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"`
	RequestedBy string    `json:"requestedBy,omitempty"`
	At          time.Time `json:"at,omitzero"`

	TerminatedBy string           `json:"terminatedBy,omitempty"`
	Failure      *history.Failure `json:"failure,omitempty"`
	Paused       *history.Pause   `json:"paused,omitempty"`
}

// statusMissing is the status of an instance that does not exist.
const statusMissing client.RuntimeStatus = "not found"

func newCause(relation string, st *client.Status, request *history.Event) cause {
	c := cause{
		Relation: relation, InstanceID: st.InstanceID, Status: st.Status, TerminatedBy: st.TerminatedBy,
		Failure: st.Failure, Paused: st.Paused,
	}
	if request != nil {
		c.Reason, c.Message = request.Reason, request.Message
		c.RequestedBy, c.At = request.RequestedBy, request.Time
	}
	return c
}

// whyHead is the data of the cancellations of an execution without its lists.
type whyHead struct {
	InstanceID  string               `json:"instanceId"`
	ExecutionID string               `json:"executionId"`
	Status      client.RuntimeStatus `json:"status"`
	StartedBy   string               `json:"startedBy,omitempty"`
	NextCursor  string               `json:"nextCursor,omitempty"`
}

func (s *server) why(ctx context.Context, c call[whyArgs]) (*toolResult, error) {
	in := &c.in
	limit, err := limitOf(in.Limit, 50, 100)
	if err != nil {
		return nil, err
	}
	st, err := s.hub.Client.Status(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	execution := cmp.Or(in.Execution, st.ExecutionID)
	var whole client.CancellationPage
	p, err := readPage(limit, func(limit int) ([]client.Cancellation, string, error) {
		found, err := s.hub.Client.CancellationsPage(ctx, in.ID, execution,
			client.Paging{Limit: limit, Cursor: in.Cursor})
		whole = found
		return found.Items, found.NextCursor, err
	})
	if errors.Is(err, client.ErrNotFound) {
		return nil, instances.NoExecution(st, execution)
	}
	if err != nil {
		return nil, err
	}
	var causes []cause
	if execution == st.ExecutionID { // the status is that of the current execution
		if causes, err = (causeReader{s.hub.Client}).read(ctx, &st); err != nil {
			return nil, err
		}
	}
	causeDocs, err := encodeItems(causes)
	if err != nil {
		return nil, err
	}

	a := &toolResult{
		Summary: fmt.Sprintf("The instance is %s. The page has %d cancellations. The last one of %d causes is "+
			"the root cause.", st.Status, len(p.items), len(causes)),
		Notice: p.notice(),
		cursor: p.next,
	}
	head := whyHead{
		InstanceID: st.InstanceID, ExecutionID: execution, Status: st.Status, StartedBy: st.StartedBy,
		NextCursor: p.next,
	}
	text := causesText(causes) + "\n" + instances.CancellationsText(st, whole)
	return a, a.setData(text, head, list{"causes", causeDocs[:fitting(causeDocs, maxCauseBytes)]},
		list{nameItems, p.docs})
}

// maxCauseBytes is the space for causes.
const maxCauseBytes = 8 << 10

// causeReader reads chains of causes.
type causeReader struct{ client *client.Client }

// read returns an instance and the instances that explain its status: the parents that cancelled it, and the children
// that failed, or on which it waits. The root cause is the last one.
func (r causeReader) read(ctx context.Context, st *client.Status) ([]cause, error) {
	up, err := r.parentCauses(ctx, st)
	if err != nil {
		return nil, err
	}
	if len(up) > 1 {
		return up, nil
	}
	down, err := r.childCauses(ctx, st)
	return slices.Concat(up, down), err
}

// parentCauses returns an instance and the parents that cancelled it, the nearest one first.
func (r causeReader) parentCauses(ctx context.Context, st *client.Status) (found []cause, err error) {
	of := history.ExecutionRef{InstanceID: st.InstanceID, ExecutionID: st.ExecutionID}
	relation, child := relationInstance, int64(0)
	for range maxCauses {
		own, ofChild, err := r.cancelRequests(ctx, of, child)
		if err != nil && !errors.Is(err, client.ErrNotFound) { // the history may be gone
			return nil, err
		}
		request := own
		if request == nil {
			request = ofChild
		}
		found = append(found, newCause(relation, st, request))
		if own == nil || st.Parent == nil || !strings.HasPrefix(own.RequestedBy, history.RequestedByParent) {
			return found, nil
		}
		of = history.ExecutionRef{InstanceID: st.Parent.InstanceID, ExecutionID: st.Parent.ExecutionID}
		relation, child = relationParent, st.Parent.EventID
		parent, err := r.client.Status(ctx, of.InstanceID)
		if errors.Is(err, client.ErrNotFound) {
			return append(found, cause{Relation: relation, InstanceID: of.InstanceID, Status: statusMissing}), nil
		}
		if err != nil {
			return nil, err
		}
		st = &parent
	}
	return found, nil
}

// cancelRequests returns the first cancel request of an execution, and that of the child with this event ID. A missing
// request is nil.
func (r causeReader) cancelRequests(
	ctx context.Context, of history.ExecutionRef, child int64,
) (own, ofChild *history.Event, err error) {
	for e, err := range r.client.History(ctx, of.InstanceID, client.WithExecutionID(of.ExecutionID)) {
		if err != nil {
			return own, ofChild, err
		}
		switch {
		case e.Kind == history.CancelRequested && own == nil:
			own = &e
		case e.Kind == history.SubOrchestrationCancelRequested && child != 0 && concerns(&e, child):
			ofChild = &e
		}
		if own != nil && (child == 0 || ofChild != nil) {
			break
		}
	}
	return own, ofChild, nil
}

// concerns reports whether an event refers to another event.
func concerns(e *history.Event, id int64) bool {
	return e.SourceEventID == id || slices.ContainsFunc(e.SourceEventIDs, func(r history.Range) bool {
		return r.First <= id && id <= r.Last
	})
}

// childCauses returns the chain of children that explain a failure, or for which an instance waits.
func (r causeReader) childCauses(ctx context.Context, st *client.Status) (found []cause, err error) {
	for range maxCauses {
		id, err := r.decisiveChild(ctx, st)
		if err != nil || id == "" {
			return found, err
		}
		child, err := r.client.Status(ctx, id)
		if errors.Is(err, client.ErrNotFound) {
			return append(found, cause{Relation: relationChild, InstanceID: id, Status: statusMissing}), nil
		}
		if err != nil {
			return nil, err
		}
		found = append(found, newCause(relationChild, &child, nil))
		st = &child
	}
	return found, nil
}

// decisiveChild returns the ID of the child that failed an instance, or for which the instance waits, or "".
func (r causeReader) decisiveChild(ctx context.Context, st *client.Status) (string, error) {
	switch st.Status {
	case client.StatusFailed:
		return r.failedChild(ctx, st)
	case client.StatusRunning, client.StatusCancelling:
		p, err := httpapi.ReadPending(ctx, r.client, *st, maxPendingShown)
		if err != nil || p == nil || p.Pending == nil {
			return "", err
		}
		return waitedChild(p, describe.ReadChildren(ctx, r.client, p)), nil
	default:
		return "", nil
	}
}

// waitedChild returns the first child that is blocked or paused, otherwise the first one that runs, or "".
func waitedChild(p *httpapi.Pending, children describe.Children) string {
	running := ""
	for i := range p.Items {
		id := p.Items[i].InstanceID
		if p.Items[i].Kind != client.PendingSubOrchestration {
			continue
		}
		switch client.RuntimeStatus(children[id]) {
		case client.StatusBlocked, client.StatusPaused:
			return id
		case client.StatusRunning, client.StatusCancelling, client.StatusPending:
			running = cmp.Or(running, id)
		default:
		}
	}
	return running
}

// failedChild returns the ID of the child whose failure is the failure of an instance, or one of its causes, or "".
func (r causeReader) failedChild(ctx context.Context, st *client.Status) (string, error) {
	source := int64(0)
	for e, err := range r.client.History(ctx, st.InstanceID, client.WithExecutionID(st.ExecutionID)) {
		if err != nil {
			return "", err
		}
		if e.Kind == history.SubOrchestrationFailed && explains(e.Error, st.Failure) {
			source = e.SourceEventID
		}
	}
	if source == 0 {
		return "", nil
	}
	for e, err := range r.client.History(ctx, st.InstanceID, client.WithExecutionID(st.ExecutionID),
		client.AfterEvent(source-1)) {
		if err != nil {
			return "", err
		}
		return e.InstanceID, nil
	}
	return "", nil
}

// explains reports whether a failure is another one or one of its causes.
func explains(f, of *history.Failure) bool {
	for ; f != nil && of != nil; of = of.Cause {
		if f.Type == of.Type && f.Message == of.Message {
			return true
		}
	}
	return false
}

// causesText returns a line for each cause.
func causesText(causes []cause) string {
	if len(causes) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Causes, the root cause last:\n")
	for i := range causes {
		b.WriteString("  " + term.OneLine(causes[i].text()) + "\n")
	}
	return b.String()
}

func (c *cause) text() string {
	text := fmt.Sprintf("%s %s is %s", c.Relation, c.InstanceID, c.Status)
	if c.Reason != "" {
		text += ": cancel reason " + c.Reason
		if c.Message != "" {
			text += fmt.Sprintf(" %q", c.Message)
		}
		if c.RequestedBy != "" {
			text += ", requested by " + describe.ShortIdentity(c.RequestedBy)
		}
		text += " at " + term.Time(c.At)
	}
	if c.TerminatedBy != "" {
		text += "; terminated by " + c.TerminatedBy
	}
	if c.Paused != nil {
		text += "; paused " + describe.Pause(c.Paused)
	}
	if c.Failure != nil {
		text += "; failure " + describe.Failure(c.Failure)
	}
	return text
}
