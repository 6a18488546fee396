package provider

import "time"

// Run is a delivery of a work item that runs, or is about to run, the code of its activity. Runs are stored only for
// activities with NeedsRunClaim (WaitForCancellation or AtMostOnce). Only one delivery of such an activity may run at a
// time.
type Run struct {
	ExecutionID string
	ActivityID  int64
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64
	Attempt int
	// Token identifies the delivery uniquely.
	Token string
	// Until is the time at which the run expires unless it is renewed.
	Until time.Time
	// Abandoned is true if the code of this run or of an earlier run did not return when its context ended, and may
	// still be running. It is set in ReleaseRun and in RunClaim.PreviousRun. All later runs and attempts have the value
	// true.
	Abandoned bool
}

// RunClaim is the result of ClaimRun.
type RunClaim struct {
	// Held is true if the delivery holds the run.
	Held bool
	// PreviousRun is the run of the previous holder, or nil if no delivery held the run before. PreviousRecord is the
	// activity record at that time.
	PreviousRun    *Run
	PreviousRecord ActivityRecord
	// Outcome is the outcome that CompleteRun stored for the same attempt. It may have been sent or not. No code of the
	// attempt is running, and Held is false.
	Outcome *ActivityOutcome
	// Cancel reports whether the activity is cancelled. CancelsFrom is the segment from which to continue reading the
	// cancel record. Both are zero if Held is false.
	Cancel      CancelInfo
	CancelsFrom int64
}
