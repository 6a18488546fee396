package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Execution is one run of an instance's code. Continue-as-new starts the next execution. Its JSON is the same as in the
// HTTP API.
type Execution = provider.Execution

// Executions yields the executions of an instance, the current one first. The reads are strongly consistent, and each
// execution costs one read. The iterator ends with the first error, which is ErrNotFound if the instance does not
// exist.
func (c *Client) Executions(ctx context.Context, instanceID string) iter.Seq2[Execution, error] {
	return func(yield func(Execution, error) bool) {
		if err := inputcheck.InstanceID(instanceID); err != nil {
			yield(Execution{}, fmt.Errorf("client: executions: %w", err))
			return
		}
		for x, err := range c.ops.ListExecutions(ctx, instanceID) {
			if err != nil {
				yield(Execution{}, fmt.Errorf("client: executions: %w", err))
				return
			}
			if !yield(x, nil) {
				return
			}
		}
	}
}

// ExecutionsPage returns one page of Executions.
func (c *Client) ExecutionsPage(ctx context.Context, instanceID string, p Paging) (Page[Execution], error) {
	page := Page[Execution]{Items: []Execution{}}
	err := inputcheck.Limit(p.Limit)
	if err == nil {
		err = inputcheck.Text(inputcheck.FieldCursor, p.Cursor, 0, maxExecutionIDBytes)
	}
	if err != nil {
		return page, fmt.Errorf("client: executions: %w", err)
	}

	found, next, err := c.ops.ExecutionsPage(ctx, instanceID, cmp.Or(p.Limit, defaultPage), p.Cursor)
	page.Items, page.NextCursor = append(page.Items, found...), next
	return page, wrap("executions", err)
}
