package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// outcome is the end of a change of a stack.
type outcome struct {
	status string // of the stack
	cause  *Event // the first failure, or nil
	// kept are the resources that the rollback of a creation did not delete.
	kept []string
}

// failed reports whether the change failed.
func (o *outcome) failed() bool {
	return strings.Contains(o.status, "ROLLBACK") || strings.HasSuffix(o.status, "_FAILED") ||
		strings.HasPrefix(o.status, "DELETE")
}

// err returns the error of a failed change.
func (o *outcome) err(stack string) error {
	text := "stack " + stack + " is " + o.status
	if o.cause != nil {
		text = fmt.Sprintf("%s (%s) failed: %s; %s", o.cause.Resource, o.cause.Type, o.cause.Reason, text)
	}
	switch o.status {
	case "UPDATE_ROLLBACK_COMPLETE":
		text += ": the previous deployment is running"
	case statusRollbackComplete:
		text += ": delete it with aws cloudformation delete-stack before the next attempt"
		if len(o.kept) > 0 {
			text += "; retained without use: " + strings.Join(o.kept, ", ")
		}
	}
	return &FailedError{Status: o.status, text: text}
}

// FailedError reports that a change of a stack failed and was rolled back.
type FailedError struct {
	Status string // of the stack
	text   string
}

// Error implements error.
func (e *FailedError) Error() string { return e.text }

// follow prints the events of a stack after the newest known one until a change ends. Without a known event, it begins
// at the start of the current change.
func (d *deployment) follow(ctx context.Context, stackID, newest string) (*outcome, error) {
	f := follower{deployment: d, stackID: stackID, newest: newest, started: newest == ""}
	for {
		if err := f.read(ctx); err != nil {
			return nil, err
		}
		if f.ended {
			return &f.outcome, nil
		}
		if err := d.Sleep(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}

// follower reads the events of a change.
type follower struct {
	*deployment

	stackID string
	newest  string // the newest event that was read
	started bool   // the start of the change was read
	ended   bool
	outcome
}

// read reads the new events. AWS can throttle for longer than a call is repeated, and CloudFormation continues.
func (f *follower) read(ctx context.Context) error {
	events, err := f.Stacks.StackEvents(ctx, f.stackID, func(e *Event) bool {
		return e.ID == f.newest || f.newest == "" && f.isStart(e)
	})
	if err != nil && isTransient(err) && ctx.Err() == nil {
		f.printf("%v; retrying", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; CloudFormation continues to change stack %s; run the command again to follow it", err,
			f.Stack)
	}
	slices.Reverse(events)
	for i := range events {
		f.newest = events[i].ID
		f.add(&events[i])
	}
	return nil
}

// isOwn reports whether an event is one of the stack itself.
func (f *follower) isOwn(e *Event) bool { return e.Physical == f.stackID }

// isStart reports whether an event is the start of a change.
func (f *follower) isStart(e *Event) bool {
	return f.isOwn(e) && (e.Status == "CREATE_IN_PROGRESS" || e.Status == "UPDATE_IN_PROGRESS" ||
		e.Status == "IMPORT_IN_PROGRESS")
}

// add records an event, and prints it if a resource reaches its final status.
func (f *follower) add(e *Event) {
	final := strings.HasSuffix(e.Status, "_COMPLETE") || strings.HasSuffix(e.Status, "_FAILED")
	if f.isOwn(e) {
		// The last event of an earlier change can become visible late. It precedes the start of this change.
		f.started = f.started || f.isStart(e)
		f.status, f.ended = e.Status, final && f.started
		return
	}
	failure := strings.HasSuffix(e.Status, "_FAILED")
	// CloudFormation cancels the other resources after a failure.
	if failure && f.cause == nil && !strings.Contains(e.Reason, "cancelled") {
		f.cause = e
	}
	skipped := e.Status == "DELETE_SKIPPED"
	if skipped {
		f.kept = append(f.kept, e.Physical)
	}
	if !final && !skipped {
		return
	}
	line := fmt.Sprintf("%-24s %-32s %s", e.Status, e.Type, e.Resource)
	switch {
	case failure && e.Reason != "":
		line += ": " + term.OneLine(e.Reason)
	case skipped: // the stack no longer has it, but it costs money
		line += ": retained as " + term.OneLine(e.Physical)
	}
	f.printf("%s", line)
}
