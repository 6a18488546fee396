package provider

import "time"

// Run is a delivery of a work item that runs the code of its activity, or is about to. It is kept of activities that are waited for when
// they are cancelled (WorkItem.WaitCancel): their end is the end of whatever runs of them, and two copies of a message must not each tell
// its own.
type Run struct {
	ExecutionID string
	ActivityID  int64
	// Segment is the one that scheduled the activity.
	Segment int64
	Attempt int
	// Token is the delivery's own: no other has it.
	Token string
	// Until is when it has run out, unless it is taken again before.
	Until time.Time
}

// Taken is what came of asking for a run.
type Taken struct {
	// Held: the run is the delivery's that asked.
	Held bool
	// Before is who had it before, another delivery; nil where nobody ever had. Left is what was left of the activity until then.
	Before *Run
	Left   ActivityRecord
	// Outcome is what EndRun has kept of this very attempt: it may have been told or not, and nothing of it runs any more. Then the run is
	// not Held.
	Outcome *ActivityOutcome
	// Cancel is whether the activity is cancelled, and Heard from where to read on in the cancel record; nothing where the run is not Held.
	Cancel CancelInfo
	Heard  int64
}
