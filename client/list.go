package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/provider"
)

// Query selects instances for a list, by all of its fields that are not zero. The newest come first; of those that are Blocked, Paused or Deleting,
// the ones that became so last.
type Query struct {
	Status RuntimeStatus
	// Name is that of the orchestration.
	Name string
	// Version is the orchestration's. An instance that was started without one has none before its first turn.
	Version string
	// Tags selects instances that have all of them, with these values.
	Tags map[string]string
	// Parent is the id of the instance that waits for it, as a parent of sub-orchestrations does.
	Parent string
	// StartedAfter selects instances that were started then or later, and StartedBefore those that were started earlier; both count to
	// the millisecond.
	StartedAfter  time.Time
	StartedBefore time.Time
}

// List yields all instances that q selects, page by page, from an index that may be a second behind. It ends with the
// first error. The statuses hold no Output and no Failure.
func (c *Client) List(ctx context.Context, q Query) iter.Seq2[Status, error] {
	return eachOfPages(func(p Paging) (Page[Status], error) { return c.ListPage(ctx, q, p) })
}

// ListPage reads a page of List. What one page reads is bounded: where q selects few of many instances, a page may be short, or empty, and
// not be the last.
//
// The times of starts bound what is read, and instances that are Blocked, Paused or Deleting have an index of their own. Every other field is compared
// with what is read: on DynamoDB a page reads up to 16,000 instances, some 5 MB or 600 read units (less than $0.0001 at list price), and finds what matches
// among those.
func (c *Client) ListPage(ctx context.Context, q Query, p Paging) (Page[Status], error) {
	err := checkQuery(q)
	if err == nil {
		err = checkLimit(p.Limit)
	}
	if err == nil {
		err = checkCursor(p.Cursor)
	}
	if err != nil {
		return Page[Status]{}, fmt.Errorf("client: list: %w", err)
	}

	found, err := c.hub.ListInstances(ctx, provider.Query{
		Status: q.Status, Name: q.Name, Version: q.Version, Tags: q.Tags, Parent: q.Parent, StartedAfter: q.StartedAfter, StartedBefore: q.StartedBefore,
		Limit: p.Limit, Cursor: p.Cursor,
	})
	if err != nil {
		return Page[Status]{}, fmt.Errorf("client: list: %w", err)
	}
	page := Page[Status]{Items: make([]Status, len(found.Instances)), NextCursor: found.NextCursor}
	for i, in := range found.Instances {
		page.Items[i] = c.statusOf(ctx, &in)
	}
	return page, nil
}

func checkQuery(q Query) error {
	if wrong := statusProblem(q.Status); wrong != "" {
		return &provider.FieldError{Field: "status", Problem: wrong}
	}
	if !q.StartedBefore.IsZero() && !q.StartedAfter.Before(q.StartedBefore) {
		return &provider.FieldError{Field: "startedAfter", Problem: "leaves no time before startedBefore: nothing is selected"}
	}
	return checkSelection(q.Name, q.Version, q.Parent, q.Tags)
}

// statusProblem returns what is wrong with a status that is selected by; empty: nothing.
func statusProblem(s RuntimeStatus) string {
	switch s {
	case "", StatusPending, StatusRunning, StatusCancelling, StatusBlocked, StatusPaused, StatusCompleted, StatusFailed, StatusCancelled, StatusTerminated,
		StatusDeleting:
		return ""
	default:
		return fmt.Sprintf("%q is none of %s, %s, %s, %s, %s, %s, %s, %s, %s and %s", provider.Echo(s),
			StatusPending, StatusRunning, StatusCancelling, StatusBlocked, StatusPaused, StatusCompleted, StatusFailed, StatusCancelled, StatusTerminated, StatusDeleting)
	}
}

// checkSelection checks what a list and a bulk select by alike.
func checkSelection(name, version, parent string, tags map[string]string) error {
	return errors.Join(checkText("name", name, 0, MaxOrchestrationBytes), checkText("version", version, 0, MaxVersionBytes),
		checkText("parent", parent, 0, MaxInstanceIDBytes), provider.CheckTags(tags))
}
