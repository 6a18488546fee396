package verification

import (
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Result is the --json output of verify.
type Result struct {
	Orchestrations []VersionCount `json:"orchestrations"`
	// Findings are the instances that would not continue unchanged: at most 1,000, the worst first.
	Findings []Finding `json:"findings"`
	// Open is the number of instances that have not ended. Chosen is the size of the sample. Replayed is smaller if
	// instances ended during the run.
	Open     int `json:"open"`
	Chosen   int `json:"chosen"`
	Replayed int `json:"replayed"`

	retry string // the retry that was in progress at the end
}

// VersionCount counts instances of one version.
type VersionCount struct {
	Orchestration string `json:"orchestration"`
	Version       string `json:"version"` // empty for instances that have no version yet
	Open          int    `json:"open"`
	Replayed      int    `json:"replayed"`
	WouldBlock    int    `json:"wouldBlock"`
	StayBlocked   int    `json:"stayBlocked"`
	OtherInputs   int    `json:"otherInputs"`
	Unread        int    `json:"unread"`
}

// Outcome is the result of replaying an instance.
type Outcome string

// Outcomes of a replay.
const (
	OutcomeContinues    Outcome = "goesOn"
	OutcomeWouldBlock   Outcome = "wouldBlock"
	OutcomeStaysBlocked Outcome = "staysBlocked"
	OutcomeOtherInputs  Outcome = "otherInputs"
	OutcomeUnread       Outcome = "unread"
)

// Finding is an instance that would not continue unchanged.
type Finding struct {
	InstanceID    string  `json:"instanceId"`
	ExecutionID   string  `json:"executionId"`
	Orchestration string  `json:"orchestration"`
	Version       string  `json:"version"`
	Outcome       Outcome `json:"outcome"`
	EventID       int64   `json:"eventId,omitempty"` // the first event at which history and code differ
	Problem       string  `json:"problem"`
}

// ExitError returns the error that sets the exit code, or nil. overdue is true if the time limit ended the
// verification.
func (v *Result) ExitError(allowed Allowance, timeout time.Duration, overdue bool) error {
	blocked := 0
	for i := range v.Orchestrations {
		blocked += v.Orchestrations[i].WouldBlock
	}
	switch {
	case blocked > 0:
		return cli.Exitf(cli.CodeFailed, "%d of %d replayed instances would be blocked by this build; "+
			"do not deploy it, or keep the old code under another version", blocked, v.Replayed)
	case overdue:
		return cli.Exitf(cli.CodeTimeout, "%d of %d instances replayed after %s%s; "+
			"increase --timeout or reduce --max-instances", v.Replayed, v.Chosen, timeout, v.retry)
	case !allowed.allows(v.unread(), v.Replayed):
		return &cli.ExitError{Code: cli.CodeError, Text: v.unreadText()}
	}
	return nil
}
