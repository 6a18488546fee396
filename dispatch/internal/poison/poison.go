// Package poison detects turns that crash their process, by crash markers (R13).
package poison

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Error is the error of a turn that has crashed its process too often.
type Error struct {
	InstanceID string
	// CrashCount is the number of crash markers of the trigger: deliveries that crashed the process, without the first
	// ones, which had no marker.
	CrashCount int
	// Interceptors are the names of the interceptors that were called around the turn.
	Interceptors []string
}

func (e *Error) Error() string {
	code := "its code"
	if len(e.Interceptors) > 0 {
		code = "its code or an interceptor (" + strings.Join(e.Interceptors, ", ") + ")"
	}
	return fmt.Sprintf("instance %q: its turn started and did not end in %d deliveries: %s crashed the process "+
		"(out of memory, os.Exit, a fatal error) or exceeded the time of the invocation. "+
		"See the orchestrator's log, and deploy a fix: the instance then continues", e.InstanceID, e.CrashCount, code)
}

// Diagnosis implements execution.Diagnosed.
func (e *Error) Diagnosis() *history.Failure {
	return &history.Failure{Type: history.TypePoison, Message: e.Error()}
}

// SuspectError is the error of a session whose trigger has crash markers. The session has to run alone.
type SuspectError struct{ CrashCount int }

func (e *SuspectError) Error() string { return "dispatch: message has a crash marker" }

// IsBlocked reports whether an instance is blocked as poison in a build, possibly among other builds.
func IsBlocked(build string, x *history.Summary) bool {
	why := x.Blocked.Diagnoses[build]
	return x.Blocked.Active && why != nil && why.Type == history.TypePoison
}

// Options are the options of Checks.
type Options struct {
	Base *intake.Base
	// MaxCrashes is the maximum number of crash markers with which a turn runs again. With one more, it is poison.
	MaxCrashes int
	// Interceptors returns the names of the interceptors of turns.
	Interceptors func() []string
}

// Check checks the trigger of a session for crash markers, once.
type Check struct {
	options    *Options
	instanceID string
	// alone is set if no other code runs in the process at the same time.
	alone bool

	done    bool
	marker  *provider.Delivery // nil: none was written
	verdict *Error             // nil: the code may run
	copied  bool               // the records are in the dead-letter queue
}

// NewCheck returns the check of a session.
func NewCheck(o *Options, instanceID string, alone bool) Check {
	return Check{options: o, instanceID: instanceID, alone: alone}
}

// Alone reports whether no other code runs in the process at the same time.
func (c *Check) Alone() bool { return c.alone }

// BeforeCode writes a crash marker before the code of an execution runs, or is replayed, in the third delivery of the
// trigger and later ones, and if it was redriven. It returns a *SuspectError if there are markers already and the
// session does not run alone, and an *Error if there are too many. blocked is set if the instance is blocked as poison
// in this build. In that case, each message is tried once, alone, because a function with more memory may have the same
// build ID.
func (c *Check) BeforeCode(ctx context.Context, executionID string, blocked bool, q *messages.Queue) error {
	if c.done || len(q.Unacknowledged()) == 0 {
		return c.err()
	}
	return c.check(ctx, executionID, blocked, q.Trigger())
}

func (c *Check) check(ctx context.Context, executionID string, blocked bool, m *provider.InboxMessage) error {
	switch {
	case !blocked && !intake.NeedsMarker(&m.Record, m.Redrive):
		return nil
	case blocked && !c.alone:
		return &SuspectError{CrashCount: c.options.MaxCrashes}
	}

	a := provider.Delivery{ExecutionID: executionID, Record: m.Redrive.Of(m.Record), Batched: !c.alone}
	crashCount, err := intake.Mark(ctx, c.options.Base, a)
	if err != nil {
		return fmt.Errorf("dispatch: instance %q: write crash marker: %w", c.instanceID, err)
	}
	poison := crashCount > c.options.MaxCrashes || blocked && crashCount > 0
	if !poison && !c.alone && crashCount > 0 {
		return &SuspectError{CrashCount: crashCount}
	}

	c.done = true
	if c.alone || crashCount == 0 {
		c.marker = &a
	}
	if poison {
		c.verdict = &Error{InstanceID: c.instanceID, CrashCount: crashCount, Interceptors: c.options.Interceptors()}
	}
	return c.err()
}

func (c *Check) err() error {
	if c.verdict == nil {
		return nil
	}
	return c.verdict
}

// End deletes the crash marker, because the process is alive. If the messages are processed and other code ran at the
// same time, End keeps the marker to save a call. If the records are not deleted, only the first marker can remain. The
// markers of poison that could not be handled are kept.
func (c *Check) End(ctx context.Context, failed error) {
	if c.marker == nil || c.verdict != nil || failed == nil && c.marker.Batched {
		return
	}
	if err := intake.Unmark(ctx, c.options.Base, *c.marker); err != nil {
		c.options.Base.Logger.WarnContext(ctx, "crash marker deletion failed",
			"event", logevent.CrashMarkerDeleteFailed, "instance", c.instanceID, "error", err)
	}
}

// DeadLetter copies the records of a turn that is not run to the dead-letter queue, once. It must be called before the
// inputs are committed. If the inputs were committed first, a crash in between would leave no dead letter.
func (c *Check) DeadLetter(ctx context.Context, all []provider.InboxMessage, why *history.Failure) error {
	if c.copied {
		return nil
	}
	if err := DeadLetter(ctx, c.options.Base, all, why); err != nil {
		return fmt.Errorf("dispatch: instance %q: move poison message to the dead-letter queue: %w", c.instanceID, err)
	}
	c.copied = true
	return nil
}

// DeadLetter copies the records of messages to the dead-letter queue.
func DeadLetter(ctx context.Context, b *intake.Base, all []provider.InboxMessage, why *history.Failure) error {
	for i := range all {
		u := provider.Unreadable{Record: all[i].Record, Err: intake.ReasonFor(why)}
		if err := b.Provider.DeadLetter(ctx, provider.QueueInbox, u); err != nil {
			return err
		}
	}
	return nil
}
