package provider

import (
	"encoding/json"
	"time"
)

// ActivityRecord is what a worker leaves of an activity beside its outcome: how it ended when it was cancelled, and the details
// of its heartbeats, and that a worker's build did not know it. Zero fields were not left.
type ActivityRecord struct {
	// ActivityID is the id of the event that scheduled the activity.
	ActivityID int64
	// SeenAt is when the worker saw that the activity is cancelled.
	SeenAt time.Time
	// EndedAt is when the activity ended then; of one that leaked, when it was given up.
	EndedAt time.Time
	// End is how; empty when nothing is known.
	End ActivityEnd
	// Details are those of the last heartbeat that was written; nil when there was none.
	Details json.RawMessage
	// BeatenAt is the time of that heartbeat.
	BeatenAt time.Time
	// UnknownAt is when a worker last received the activity whose build does not have it, and gave it back; UnknownBuild is that build.
	UnknownAt    time.Time
	UnknownBuild string
	// BegunAt is when a worker began it that found such a word.
	BegunAt time.Time
	// RunOutOf is the attempt that ran into the end of its invocation last, having had its fair share of it; 0 where none did or none
	// is told of. RunOuts is in how many deliveries in a row it has, without a new heartbeat: the two are written together.
	RunOutOf, RunOuts int
}

// Unknown reports whether the last that is known of the activity is that a worker's build does not have it: nothing tells that an
// attempt has begun since, neither this record nor the attempt that failed at failedAt (zero: none).
func (r *ActivityRecord) Unknown(failedAt time.Time) bool {
	return r.UnknownAt.After(r.BegunAt) && r.UnknownAt.After(r.BeatenAt) && r.UnknownAt.After(failedAt)
}

// ActivityEnd is how an activity ended that was cancelled. The strings are part of the format.
type ActivityEnd string

// The ends of activities that were cancelled.
const (
	// EndNeverStarted: its code did not run in the delivery that found it cancelled.
	EndNeverStarted ActivityEnd = "never_started"
	// EndStopped: it returned an error after its context had ended.
	EndStopped ActivityEnd = "stopped"
	// EndFinished: it returned a result all the same.
	EndFinished ActivityEnd = "finished"
	// EndLeaked: it did not return within the grace, and was not waited for any longer.
	EndLeaked ActivityEnd = "leaked"
)
