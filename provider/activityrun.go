package provider

import "time"

// Run is a delivery of a work item that runs the code of its activity, or is about to. Runs are stored only for
// activities that are waited for when they are cancelled, or that run at most once (WorkItem.TakesRun): the first end when
// all their running code has ended, so two copies of a message must not each report an end of their own; of the others no
// delivery begins what one before it may have begun.
type Run struct {
	ExecutionID string
	ActivityID  int64
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64
	Attempt int
	// Token identifies the delivery; no other delivery has the same.
	Token string
	// Until is when the run expires, unless it is taken again before.
	Until time.Time
	// GivenUp is set on a run that was left (LeaveRun) and on the previous holder's run (Taken.Before). It reports that
	// the code of this run, or of one before it, did not return when its context ended, and may still be running. Once
	// set it stays set for every later holder of the run, in other attempts too.
	GivenUp bool
}

// Taken is the result of asking for a run.
type Taken struct {
	// Held reports that the delivery that asked has the run.
	Held bool
	// Before is the run of the previous holder, another delivery; nil where there was none. Left is the activity's
	// record as it was until then.
	Before *Run
	Left   ActivityRecord
	// Outcome is what EndRun has stored for this same attempt. It may have been sent or not, and no code of the attempt
	// runs any more. The run is then not Held.
	Outcome *ActivityOutcome
	// Cancel reports whether the activity is cancelled. CancelsFrom is the segment from which to read on in the cancel
	// record. Both are zero where the run is not Held.
	Cancel      CancelInfo
	CancelsFrom int64
}
