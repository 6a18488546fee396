package provider

import (
	"encoding/json"
	"time"
)

// ActivityRecord is what workers store of an activity beside its outcome: how it ended when it was cancelled, the
// details of its heartbeats, and whether a worker's build did not know it. A zero field was not written.
type ActivityRecord struct {
	// ActivityID is the id of the event that scheduled the activity.
	ActivityID int64
	// SeenAt is when the worker saw that the activity is cancelled.
	SeenAt time.Time
	// EndedAt is when the cancelled activity ended; for one that leaked, when its worker stopped waiting for it.
	EndedAt time.Time
	// End is how the cancelled activity ended; empty when that is not known.
	End ActivityEnd
	// Details are the details of the last heartbeat that was written; nil when there was none.
	Details json.RawMessage
	// BeatenAt is the time of that heartbeat.
	BeatenAt time.Time
	// UnknownAt is when a worker whose build does not have the activity last received it and gave it back; UnknownBuild
	// is that build.
	UnknownAt    time.Time
	UnknownBuild string
	// BegunAt is when a worker began the activity after it had found such a note of an unknown build.
	BegunAt time.Time
	// RunOutOf is the attempt that last ran into the end of its invocation after its fair share of it; 0 where no
	// attempt has, or none is recorded. RunOuts is the number of deliveries in a row in which it did so without a new
	// heartbeat. The two are written together.
	RunOutOf, RunOuts int
	// Pending is what the worker of attempt PendingOf reported when its code had returned perdure.ErrPending. The two are
	// written together, before that is sent: a copy of the work item then sends the same, and does not run the code again.
	Pending   *PendingAttempt
	PendingOf int
	// BeatOf is the attempt whose token the last heartbeat came with; 0 where none has come with a token. OverOf is the
	// last pending attempt that was ended for its limits: no heartbeat of it is taken any more (WorkItems.BeatPending).
	BeatOf, OverOf int
}

// Unknown reports whether the latest fact known of the activity is that a worker's build does not have it: neither this
// record nor the attempt that failed at failedAt (zero: none) shows that an attempt has begun since.
func (r *ActivityRecord) Unknown(failedAt time.Time) bool {
	return r.UnknownAt.After(r.BegunAt) && r.UnknownAt.After(r.BeatenAt) && r.UnknownAt.After(failedAt)
}

// ActivityEnd is how a cancelled activity ended. The strings are part of the format.
type ActivityEnd string

// The ends of cancelled activities.
const (
	// EndNeverStarted: its code did not run in the delivery that found it cancelled.
	EndNeverStarted ActivityEnd = "never_started"
	// EndStopped: it returned an error after its context had ended.
	EndStopped ActivityEnd = "stopped"
	// EndFinished: it returned a result in spite of the cancel.
	EndFinished ActivityEnd = "finished"
	// EndLeaked: it did not return within the grace period, and its worker stopped waiting for it.
	EndLeaked ActivityEnd = "leaked"
)
