package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/instances"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

const (
	// maxPageReads is the number of reads for one list, each of up to 16,000 instances on DynamoDB.
	maxPageReads = 5
	// maxPendingShown is the number of pending tasks in a status, and maxLiveChildren the number of children that
	// have not ended in a list of pending tasks.
	maxPendingShown = 20
	maxLiveChildren = 20
	// clockSkew is the maximum difference between the clocks of two functions.
	clockSkew = time.Minute
	// maxChildBytes is the space for these children.
	maxChildBytes = 8 << 10
)

type listArgs struct {
	Status        string            `json:"status,omitempty" jsonschema:"status, such as Running, Failed or Blocked"`
	Name          string            `json:"name,omitempty" jsonschema:"name of the orchestration"`
	Version       string            `json:"version,omitempty" jsonschema:"version of the orchestration"`
	Tags          map[string]string `json:"tags,omitempty" jsonschema:"tags that an instance must have"`
	Parent        string            `json:"parent,omitempty" jsonschema:"ID of the parent instance that waits for them"`
	StartedAfter  string            `json:"startedAfter,omitempty" jsonschema:"earliest start time, RFC 3339"`
	StartedBefore string            `json:"startedBefore,omitempty" jsonschema:"end of the start times, RFC 3339"`
	Limit         int               `json:"limit,omitempty" jsonschema:"maximum number of instances, 1 to 100, default 20"`
	Cursor        string            `json:"cursor,omitempty" jsonschema:"nextCursor of the previous page"`
}

type instanceArgs struct {
	ID string `json:"id" jsonschema:"instance ID"`
}

type pendingArgs struct {
	ID    string `json:"id" jsonschema:"instance ID"`
	Limit int    `json:"limit,omitempty" jsonschema:"maximum number of pending tasks, 1 to 100, default 50"`
}

type blockedArgs struct {
	ID     string `json:"id,omitempty" jsonschema:"instance ID; without it, the blocked instances of the hub"`
	Limit  int    `json:"limit,omitempty" jsonschema:"maximum number of instances, 1 to 100, default 20"`
	Cursor string `json:"cursor,omitempty" jsonschema:"nextCursor of the previous page"`
}

// limitOf returns the limit of a list.
func limitOf(limit, usual, most int) (int, error) {
	if limit < 0 || limit > most {
		return 0, &provider.FieldError{Field: "limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", most, limit)}
	}
	return cmp.Or(limit, usual), nil
}

// page is a part of a list, with the encoded items.
type page[T any] struct {
	items []T
	docs  []json.RawMessage
	next  string
}

// pageHead is the data of a page without its items.
type pageHead struct {
	NextCursor string `json:"nextCursor,omitempty"`
}

const nameItems = "items"

// readPage reads up to limit items. If they do not fit into a result, it reads fewer, so that the cursor follows the
// last item.
func readPage[T any](limit int, read func(limit int) (items []T, next string, err error)) (p page[T], err error) {
	for {
		if p.items, p.next, err = read(limit); err != nil {
			return p, err
		}
		if p.docs, err = encodeItems(p.items); err != nil {
			return p, err
		}
		n := fitting(p.docs, maxListBytes)
		if n == len(p.items) {
			return p, nil
		}
		limit = n
	}
}

// notice describes how to read the rest of a list.
func (p *page[T]) notice() string {
	if p.next == "" {
		return ""
	}
	return "There are more items: repeat the call with cursor set to nextCursor."
}

func (s *server) list(ctx context.Context, c call[listArgs]) (*toolResult, error) {
	in := &c.in
	limit, err := limitOf(in.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	q := client.ListQuery{
		Status: flagvalue.ParseStatus(in.Status), Orchestration: in.Name, Version: in.Version, Tags: in.Tags,
		ParentID: in.Parent,
	}
	if err := flagvalue.ParseTime("startedAfter", in.StartedAfter, &q.StartedAfter); err != nil {
		return nil, err
	}
	if err := flagvalue.ParseTime("startedBefore", in.StartedBefore, &q.StartedBefore); err != nil {
		return nil, err
	}
	p, err := s.readInstances(ctx, q, limit, in.Cursor)
	if err != nil {
		return nil, err
	}
	return listResult(&p, q.Status == client.StatusPaused)
}

func listResult(p *page[client.Status], pauses bool) (*toolResult, error) {
	a := &toolResult{
		Summary: fmt.Sprintf("%d instances, the newest first.", len(p.items)), Notice: p.notice(), cursor: p.next,
	}
	text := instances.ListText(p.items, pauses)
	return a, a.setData(text, pageHead{p.next}, list{nameItems, p.docs})
}

// readInstances reads up to limit instances. Few of many instances may match, so that the page is short.
func (s *server) readInstances(
	ctx context.Context, q client.ListQuery, limit int, cursor string,
) (page[client.Status], error) {
	return readPage(limit, func(limit int) (all []client.Status, next string, err error) {
		next = cursor
		for range maxPageReads {
			p, err := s.hub.Client.ListPage(ctx, q, client.Paging{Limit: limit - len(all), Cursor: next})
			if err != nil {
				return nil, "", err
			}
			all, next = append(all, p.Items...), p.NextCursor
			if next == "" || len(all) >= limit {
				break
			}
		}
		return all, next, nil
	})
}

// pendingItem is a pending task. ChildStatus is the status of a child, for the first children.
type pendingItem struct {
	client.PendingItem

	ChildStatus string `json:"childStatus,omitempty"`
}

// pendingDocs encodes pending tasks with the statuses of children.
func pendingDocs(p *httpapi.Pending, children describe.Children) ([]json.RawMessage, error) {
	if p == nil || p.Pending == nil {
		return nil, nil
	}
	items := make([]pendingItem, len(p.Items))
	for i, x := range p.Items {
		items[i].PendingItem = x
		if x.Kind == client.PendingSubOrchestration {
			items[i].ChildStatus = children[x.InstanceID]
		}
	}
	return encodeItems(items)
}

// statusHead is the data of a status without its pending tasks.
type statusHead struct {
	client.Status

	PendingTotal int                `json:"pendingTotal"`
	PendingError *httpapi.ReadError `json:"pendingUnread,omitempty"`
}

func newStatusHead(st client.Status, p *httpapi.Pending) statusHead {
	head := statusHead{Status: st}
	switch {
	case p == nil:
	case p.Pending == nil:
		head.PendingError = p.ReadError
	default:
		head.PendingTotal = p.Total
	}
	return head
}

func (s *server) status(ctx context.Context, c call[instanceArgs]) (*toolResult, error) {
	st, err := s.hub.Client.Status(ctx, c.in.ID)
	if err != nil {
		return nil, err
	}
	p, unread := httpapi.ReadPending(ctx, s.hub.Client, st, maxPendingShown)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	children := describe.ReadChildren(ctx, s.hub.Client, p)
	docs, err := pendingDocs(p, children)
	if err != nil {
		return nil, err
	}
	a := &toolResult{Summary: fmt.Sprintf("The instance is %s.", st.Status)}
	if n := fitting(docs, maxListBytes); n < len(docs) || p != nil && p.Pending != nil && p.Total > n {
		docs = docs[:n]
		a.notifyf("Only %d pending tasks are listed: use the tool pending.", n)
	}
	text := describe.Status(st) + describe.Blocked(&st, p) + describe.Pending(p, children, unread) +
		describe.NextSteps(s.env, &st, p, children)
	return a, a.setData(text, newStatusHead(st, p), list{"pending", docs})
}

func (s *server) pending(ctx context.Context, c call[pendingArgs]) (*toolResult, error) {
	limit, err := limitOf(c.in.Limit, 50, 100)
	if err != nil {
		return nil, err
	}
	st, err := s.hub.Client.Status(ctx, c.in.ID)
	if err != nil {
		return nil, err
	}
	p, err := httpapi.ReadPending(ctx, s.hub.Client, st, limit)
	if err != nil {
		return nil, err
	}
	live, err := s.liveChildren(ctx, &st)
	if err != nil {
		return nil, err
	}
	children := describe.ReadChildren(ctx, s.hub.Client, p)
	docs, err := pendingDocs(p, children)
	if err != nil {
		return nil, err
	}

	a := &toolResult{Summary: pendingSummary(&st, p, len(live.items))}
	if n := fitting(docs, maxListBytes); n < len(docs) || p != nil && p.Total > n {
		docs = docs[:n]
		a.notifyf("Only %d pending tasks are listed: those that failed before, then the oldest.", n)
	}
	text := describe.InstanceHeader(st) + describe.Pending(p, children, nil)
	if len(live.items) > 0 {
		text += "\nChildren that have not ended:\n" + instances.ListText(live.items, false)
	}
	text += describe.NextSteps(s.env, &st, p, children)
	return a, a.setData(text, newStatusHead(st, p), list{"pending", docs}, list{"liveChildren", live.docs})
}

func pendingSummary(st *client.Status, p *httpapi.Pending, children int) string {
	waits := "waits for nothing"
	if p != nil {
		waits = fmt.Sprintf("waits for %d tasks", p.Total)
	}
	return fmt.Sprintf("The instance is %s and %s. %d of its children are known to have not ended.", st.Status, waits,
		children)
}

// liveChildren reads children that have not ended, also those of an instance that has ended itself. Children start
// after their parent, which limits the read.
func (s *server) liveChildren(ctx context.Context, st *client.Status) (page[client.Status], error) {
	q := client.ListQuery{ParentID: st.InstanceID, StartedAfter: st.CreatedAt.Add(-clockSkew)}
	p, err := s.readInstances(ctx, q, client.MaxPageSize/10, "")
	if err != nil {
		return p, err
	}
	p.items = slices.DeleteFunc(p.items, func(child client.Status) bool { return child.Status.Terminal() })
	p.items = p.items[:min(len(p.items), maxLiveChildren)]
	if p.docs, err = encodeItems(p.items); err != nil {
		return p, err
	}
	n := fitting(p.docs, maxChildBytes)
	p.items, p.docs = p.items[:n], p.docs[:n]
	return p, nil
}

// blockedHead is the data of a blocked instance.
type blockedHead struct {
	statusHead

	Blocked *client.BlockedState `json:"blocked,omitempty"`
}

func (s *server) blocked(ctx context.Context, c call[blockedArgs]) (*toolResult, error) {
	if c.in.ID == "" {
		limit, err := limitOf(c.in.Limit, 20, 100)
		if err != nil {
			return nil, err
		}
		p, err := s.readInstances(ctx, client.ListQuery{Status: client.StatusBlocked}, limit, c.in.Cursor)
		if err != nil {
			return nil, err
		}
		return listResult(&p, false)
	}
	st, err := s.hub.Client.Status(ctx, c.in.ID)
	if err != nil {
		return nil, err
	}
	p, unread := httpapi.ReadPending(ctx, s.hub.Client, st, maxPendingShown)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("blocked: %w", err)
	}
	children := describe.ReadChildren(ctx, s.hub.Client, p)
	head := blockedHead{statusHead: newStatusHead(st, p)}
	if p != nil && p.Pending != nil {
		head.Blocked = p.Blocked
	}
	a := &toolResult{Summary: fmt.Sprintf("The instance is %s.", st.Status)}
	if st.Status != client.StatusBlocked {
		a.Summary = fmt.Sprintf("The instance is not blocked. It is %s.", st.Status)
	}
	if unread != nil {
		a.notifyf("The history could not be read, so that builds and children are not known.")
	}
	text := describe.Status(st) + describe.Blocked(&st, p) + describe.NextSteps(s.env, &st, p, children)
	return a, a.setData(text, head)
}

// costHead is the data of a cost without its lines, which are a list.
type costHead struct {
	admin.CostEstimate

	Lines bool `json:"lines,omitempty"` // hides the lines
}

func (s *server) cost(ctx context.Context, c call[instanceArgs]) (*toolResult, error) {
	cost, err := s.hub.Admin.EstimateCost(ctx, c.in.ID)
	if err != nil {
		return nil, err
	}
	lines, err := encodeItems(cost.Lines)
	if err != nil {
		return nil, err
	}
	a := &toolResult{Summary: fmt.Sprintf("The instance has cost about $%.6f at list prices.", cost.Dollars)}
	return a, a.setData(instances.CostText(&cost), costHead{CostEstimate: cost}, list{"lines", lines})
}
