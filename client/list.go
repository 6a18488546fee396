package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/perdure/perdure/provider"
)

// MaxPage is the largest page of a list.
const MaxPage = 1000

// Query selects instances, newest first; those that are Blocked or Deleting by when they became so. Zero fields select all. Limit is the size of a page (0 is 100, at most MaxPage);
// Cursor is the NextCursor of an earlier page of the same query.
type Query = provider.Query

// Page is one page of a list. Where few of many instances are selected it may hold fewer than the limit, or none, and not be the last: what one page
// reads is bounded.
type Page struct {
	Instances  []Status
	NextCursor string // empty: no more. It alone says that the list is over
}

// List goes through all instances that q selects, page by page, from an index that may be a second behind. It ends with the
// first error. The statuses hold no Output and no Failure.
func (c *Client) List(ctx context.Context, q Query) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		for {
			page, err := c.ListPage(ctx, q)
			if err != nil {
				yield(Status{}, err)
				return
			}
			for _, s := range page.Instances {
				if !yield(s, nil) {
					return
				}
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				return
			}
		}
	}
}

// ListPage is one page of List. A cursor of another query, or of nowhere, is a *provider.FieldError.
func (c *Client) ListPage(ctx context.Context, q Query) (Page, error) {
	if err := checkQuery(q); err != nil {
		return Page{}, fmt.Errorf("client: list: %w", err)
	}
	found, err := c.provider.ListInstances(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("client: list: %w", err)
	}
	page := Page{Instances: make([]Status, len(found.Instances)), NextCursor: found.NextCursor}
	for i, in := range found.Instances {
		page.Instances[i] = statusOf(in)
	}
	return page, nil
}

func checkQuery(q Query) error {
	switch q.Status {
	case "", StatusPending, StatusRunning, StatusCancelling, StatusBlocked, StatusCompleted, StatusFailed, StatusCancelled, StatusTerminated,
		StatusDeleting:
	default:
		return &provider.FieldError{Field: "status", Problem: fmt.Sprintf("%q is none of %s, %s, %s, %s, %s, %s, %s, %s and %s", echo(q.Status),
			StatusPending, StatusRunning, StatusCancelling, StatusBlocked, StatusCompleted, StatusFailed, StatusCancelled, StatusTerminated, StatusDeleting)}
	}
	if err := checkLimit(q.Limit); err != nil {
		return err
	}
	if err := checkCursor(q.Cursor); err != nil {
		return err
	}
	return checkText("name", q.Name, 0, MaxOrchestrationBytes)
}

const (
	fieldCursor = "cursor"
	// maxCursorBytes is more than any cursor has: the longest holds an instance id, each byte of which may be escaped.
	maxCursorBytes = 16 << 10
)

// checkCursor refuses what nobody has given out as a cursor, before anything is read for it.
func checkCursor(cursor string) error { return checkText(fieldCursor, cursor, 0, maxCursorBytes) }

// checkLimit takes 0, which is none.
func checkLimit(limit int) error {
	if limit < 0 || limit > MaxPage {
		return &provider.FieldError{Field: "limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", MaxPage, limit)}
	}
	return nil
}
