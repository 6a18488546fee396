package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// pollInterval is the interval between reads of a change set or of events.
	pollInterval = 2 * time.Second
	// cleanupTimeout limits the deletion of a change set after an interruption.
	cleanupTimeout = 10 * time.Second
)

// change creates a change set, asks for confirmation and executes it.
func (d *deployment) change(ctx context.Context, r *ChangeSetRequest) (*Result, error) {
	executed, set := false, r.Name
	defer func() {
		if !executed { // also after an interruption, in which the response of AWS may be lost
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
			defer cancel()
			_ = d.Stacks.DeleteChangeSet(cleanup, r.Stack, set) // the next run deletes it
		}
	}()
	changes, err := d.createChangeSet(ctx, r)
	if err != nil {
		return nil, err
	}
	if changes == nil {
		d.printf("no changes")
		return d.result(ctx, d.Stack, false)
	}
	// A concurrent run with the same content replaces the change set of the name, possibly with other changes.
	set = cmp.Or(changes.ID, r.Name)
	if err := d.Confirm(ctx, changes); err != nil {
		return nil, err
	}

	stackID, newest, err := d.position(ctx)
	if err != nil {
		return nil, err
	}
	// The response may be lost. From here on, the stack may change.
	executed, d.state = true, Changing
	if err := d.Stacks.ExecuteChangeSet(ctx, r.Stack, set, "execute-"+d.id); err != nil {
		if _, refused := errors.AsType[*APIError](err); !refused || isTransient(err) {
			return nil, fmt.Errorf("%w; CloudFormation may be changing stack %s; run the command again to follow it",
				err, d.Stack)
		}
		executed, d.state = false, NotChanged
		if hasCode(err, codeNoChangeSet, codeChangeSetState) {
			return nil, fmt.Errorf("%w: %w", errConcurrent, err)
		}
		return nil, err
	}
	outcome, err := d.follow(ctx, stackID, newest)
	if err != nil {
		return nil, err
	}
	if outcome.failed() {
		return nil, outcome.err(d.Stack)
	}
	d.state = Changed
	return d.result(ctx, stackID, true)
}

// createChangeSet creates a change set and waits for it. It returns nil if there are no changes.
func (d *deployment) createChangeSet(ctx context.Context, r *ChangeSetRequest) (*ChangeSet, error) {
	if err := d.Stacks.DeleteChangeSet(ctx, r.Stack, r.Name); err != nil {
		return nil, err
	}
	d.printf("creating a change set for stack %s", r.Stack)
	err := d.Stacks.CreateChangeSet(ctx, r)
	e, refused := errors.AsType[*APIError](err)
	switch {
	case hasCode(err, codeAlreadyExists) && strings.Contains(e.Message, "ChangeSet"):
		// A repeated request with a lost response, or a concurrent run with the same content.
	case hasCode(err, codeAlreadyExists):
		return nil, fmt.Errorf("%w: %w", errConcurrent, err)
	case refused && strings.Contains(e.Message, "_IN_PROGRESS state and can not be updated"):
		return nil, fmt.Errorf("%w: %w", errConcurrent, err)
	case err != nil:
		return nil, err
	}
	return d.created(ctx, r)
}

// created waits until a change set is created. It returns nil if there are no changes.
func (d *deployment) created(ctx context.Context, r *ChangeSetRequest) (*ChangeSet, error) {
	for {
		c, err := d.Stacks.DescribeChangeSet(ctx, r.Stack, r.Name)
		switch {
		case hasCode(err, codeNoChangeSet):
			return nil, fmt.Errorf("%w: %w", errConcurrent, err)
		case err != nil:
			return nil, err
		case c.Status == "CREATE_COMPLETE":
			return c, nil
		case c.Status == "FAILED" && isUnchanged(c.Reason):
			return nil, nil //nolint:nilnil // documented
		case !strings.HasSuffix(c.Status, "_PENDING") && !strings.HasSuffix(c.Status, "_IN_PROGRESS"):
			return nil, fmt.Errorf("change set for stack %s is %s: %s", r.Stack, c.Status, c.Reason)
		}
		if err := d.Sleep(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}

// isUnchanged reports whether the reason of a failed change set means that there are no changes.
func isUnchanged(reason string) bool {
	return strings.Contains(reason, "didn't contain changes") ||
		strings.Contains(reason, "No updates are to be performed")
}

// position returns the ID of the stack and its newest event.
func (d *deployment) position(ctx context.Context) (stackID, newest string, err error) {
	stack, err := d.Stacks.DescribeStack(ctx, d.Stack)
	switch {
	case err != nil:
		return "", "", err
	case stack == nil:
		return "", "", fmt.Errorf("stack %s was deleted", d.Stack)
	case isRunning(stack.Status):
		return "", "", fmt.Errorf("stack %s is %s: %w", d.Stack, stack.Status, errConcurrent)
	}
	newest, err = d.newestEvent(ctx, stack.ID)
	return stack.ID, newest, err
}

// result reads the outputs of a stack.
func (d *deployment) result(ctx context.Context, stackID string, changed bool) (*Result, error) {
	stack, err := d.settled(ctx, stackID)
	if err != nil {
		return nil, err
	}
	return &Result{Stack: d.Stack, Status: stack.Status, Changed: changed, Outputs: stack.Outputs}, nil
}

// statefulTypes are the types of resources with data, messages or the schedules of timers.
var statefulTypes = []string{
	"AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::Scheduler::ScheduleGroup",
}

// Losses returns the stateful resources that a change set removes, replaces or may replace. Their content does not move
// to the new resource. The replacement of a table with another key schema is Conditional.
func (c *ChangeSet) Losses() (resources []string) {
	for _, change := range c.Changes {
		lost := change.Action == "Remove" || change.Replacement == "True" || change.Replacement == "Conditional"
		if lost && slices.Contains(statefulTypes, change.Type) {
			resources = append(resources, change.Resource)
		}
	}
	return resources
}
