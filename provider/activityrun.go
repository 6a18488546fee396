package provider

import "time"

// Run is a delivery of a work item that runs the code of its activity, or is about to. Runs are stored only for
// activities with NeedsRunClaim, that is, with WaitForCancellation or AtMostOnce: only one delivery of such an activity
// may run at a time.
type Run struct {
	ExecutionID string
	ActivityID  int64
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64
	Attempt int
	// Token identifies the delivery uniquely.
	Token string
	// Until is the time when the run expires unless it is renewed.
	Until time.Time
	// Abandoned is true if the code of this run, or of an earlier one, did not return when its context ended, and may
	// still be running. It is set in ReleaseRun and in RunClaim.PreviousRun, and stays set for all later runs and
	// attempts.
	Abandoned bool
}

// RunClaim is the result of ClaimRun.
type RunClaim struct {
	// Held is true if the delivery holds the run.
	Held bool
	// PreviousRun is the run of the previous holder, or nil if there was none. PreviousRecord is the activity record at
	// that time.
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
