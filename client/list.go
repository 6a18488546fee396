package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// ListQuery selects the instances of a list. An instance must match all fields that are not zero. Newer instances come
// first. Blocked, Paused and Deleting instances are sorted by the time of this status instead, the latest first.
type ListQuery struct {
	// Status is the status of the instances.
	Status RuntimeStatus
	// Orchestration is the name of the orchestration.
	Orchestration string
	// Version is the version of the orchestration. An instance that was started without a version has no version before
	// its first turn.
	Version string
	// Tags selects instances that have all these tags with these values.
	Tags map[string]string
	// ParentID is the instance ID of the parent that waits for the instances.
	ParentID string
	// StartedAfter selects instances that were started at this time or later. StartedBefore selects instances that were
	// started earlier than this time. Both have a precision of a millisecond.
	StartedAfter  time.Time
	StartedBefore time.Time
}

// List yields all instances that match q. It reads them page by page from an index that may be a second behind. The
// returned statuses have no Output and no Failure. The iterator ends with the first error.
func (c *Client) List(ctx context.Context, q ListQuery) iter.Seq2[Status, error] {
	return eachOfPages(func(p Paging) (Page[Status], error) { return c.ListPage(ctx, q, p) })
}

// ListPage returns one page of List. Each call reads a limited number of instances. If few of many instances match, a
// page can be short or empty although it is not the last one.
//
// StartedAfter, StartedBefore and a Status of Blocked, Paused or Deleting limit the instances that are read. All other
// fields filter the instances after the read. On DynamoDB, a page reads up to 16,000 instances, about 5 MB or 600 read
// units (less than $0.0001 at list price).
func (c *Client) ListPage(ctx context.Context, q ListQuery, p Paging) (Page[Status], error) {
	err := checkQuery(q)
	if err == nil {
		err = inputcheck.Limit(p.Limit)
	}
	if err == nil {
		err = inputcheck.Cursor(p.Cursor)
	}
	if err != nil {
		return Page[Status]{}, fmt.Errorf("client: list: %w", err)
	}

	items, next, err := c.ops.List(ctx, &provider.ListQuery{
		Status: q.Status, Name: q.Orchestration, Version: q.Version, Tags: q.Tags, Parent: q.ParentID,
		StartedAfter: q.StartedAfter, StartedBefore: q.StartedBefore, Limit: p.Limit, Cursor: p.Cursor,
	})
	if err != nil {
		return Page[Status]{}, fmt.Errorf("client: list: %w", err)
	}
	return Page[Status]{Items: items, NextCursor: next}, nil
}

func checkQuery(q ListQuery) error {
	if err := inputcheck.Status("status", q.Status); err != nil {
		return err
	}
	if !q.StartedBefore.IsZero() && !q.StartedAfter.Before(q.StartedBefore) {
		return &provider.FieldError{Field: "startedAfter", Problem: "must be before startedBefore"}
	}
	return inputcheck.Selection(q.Orchestration, q.Version, q.ParentID, q.Tags)
}
