package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/provider"
)

// Execution is one generation of an instance: continue-as-new makes the next. Its JSON is that of the HTTP API.
type Execution struct {
	ExecutionID string    `json:"executionId"`
	Number      int64     `json:"number"` // from 1
	StartedAt   time.Time `json:"startedAt"`
}

// ExecutionPage is one page of an instance's executions.
type ExecutionPage struct {
	Executions []Execution
	NextCursor string // empty: no more
}

// defaultPage is the size of a page when none is asked for.
const defaultPage = 100

// Executions goes through the executions of an instance, the current one first, strongly consistent. It ends with the first
// error: ErrNotFound when there is no such instance. Each costs a read, so look no further than need be.
func (c *Client) Executions(ctx context.Context, instanceID string) iter.Seq2[Execution, error] {
	return func(yield func(Execution, error) bool) {
		if err := checkInstanceID(instanceID); err != nil {
			yield(Execution{}, fmt.Errorf("client: executions: %w", err))
			return
		}
		for x, err := range c.provider.ListExecutions(ctx, instanceID) {
			if err != nil {
				yield(Execution{}, fmt.Errorf("client: executions: %w", err))
				return
			}
			if !yield(Execution(x), nil) {
				return
			}
		}
	}
}

// ExecutionsPage is a page of Executions: of at most limit (0 is 100, at most MaxPage), from after the one where the page
// with this NextCursor ended. A cursor of another instance, or of nowhere, is a *provider.FieldError.
func (c *Client) ExecutionsPage(ctx context.Context, instanceID string, limit int, cursor string) (ExecutionPage, error) {
	page := ExecutionPage{Executions: []Execution{}}
	err := checkLimit(limit)
	if err == nil {
		err = checkText(fieldCursor, cursor, 0, maxExecutionIDBytes)
	}
	if err != nil {
		return page, fmt.Errorf("client: executions: %w", err)
	}
	limit = cmp.Or(limit, defaultPage)
	found := cursor == "" // the cursor is the id of the last execution that was seen: new ones do not move it
	for x, err := range c.Executions(ctx, instanceID) {
		switch {
		case err != nil:
			return page, err
		case !found:
			found = x.ExecutionID == cursor
		case len(page.Executions) == limit:
			page.NextCursor = page.Executions[limit-1].ExecutionID
			return page, nil
		default:
			page.Executions = append(page.Executions, x)
		}
	}
	if !found {
		return page, fmt.Errorf("client: executions: %w", &provider.FieldError{Field: fieldCursor, Problem: "belongs to another list"})
	}
	return page, nil
}
