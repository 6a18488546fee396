package schedule

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// Status is the status of a schedule. It is the custom status of the schedule's instance.
type Status struct {
	// Schedule is the current definition, without its input.
	Schedule Schedule `json:"schedule"`
	// Paused is the current pause, or nil. A paused schedule starts only runs that are requested manually.
	Paused *Pause `json:"paused,omitempty"`
	// NextDue is the next scheduled time. It is zero if no time follows, while the schedule or its instance is paused,
	// and after the schedule has ended. With OverlapSkip and OverlapQueue, times that are due during a run are
	// processed after the run. Until then NextDue can be in the past, and Queued and Counts do not include these times.
	NextDue time.Time `json:"next,omitzero"`
	// CurrentRun is the current run, or nil. With OverlapAllow it is always nil. If the schedule was cancelled or
	// terminated, it is the run at that time.
	CurrentRun *Run `json:"running,omitempty"`
	// Queued is the number of times that wait for the end of the current run.
	Queued int `json:"queued,omitempty"`
	// Backfills are the remaining parts of backfill windows.
	Backfills []BackfillWindow `json:"backfills,omitempty"`
	// LastRun is the last run that ended, or with OverlapAllow the last run that was started.
	LastRun *Run `json:"last,omitempty"`
	// Deleting is true if the schedule was deleted and waits for the end of its run.
	Deleting bool `json:"ending,omitempty"`
	Counts
}

// truncate shortens the texts of a status that exceeds the limit of a custom status, because the schedule would fail
// otherwise. Without these texts, the longest schedule with MaxPendingBackfills windows fits.
func truncate(s Status) Status {
	for limit := MaxMessageBytes / 2; limit > 0; limit /= 2 {
		if doc, err := json.Marshal(&s); err != nil || len(doc) <= perdure.MaxCustomStatusBytes {
			break
		}
		if s.Paused != nil {
			s.Paused = &Pause{At: s.Paused.At, Message: history.TruncateMessage(s.Paused.Message, limit)}
		}
		if s.LastRun != nil {
			last := *s.LastRun
			last.Error = history.TruncateMessage(last.Error, limit)
			s.LastRun = &last
		}
	}
	return s
}

// Counts are the counters of a schedule since its creation.
type Counts struct {
	// Started is the number of runs that were started. Failed is the number of runs that failed or were cancelled.
	Started int64 `json:"started"`
	Failed  int64 `json:"failed"`
	// Skipped is the number of times without a run because another run was running.
	Skipped int64 `json:"skipped"`
	// Missed is the number of missed times without a run.
	Missed int64 `json:"missed"`
}

// Run is a run of a schedule.
type Run struct {
	InstanceID string `json:"instanceId"`
	// Due is the scheduled time, and StartedAt is the actual start time.
	Due       time.Time `json:"due"`
	StartedAt time.Time `json:"startedAt"`
	// Outcome is the outcome of the run. Error is the error of a run that did not complete, and EndedAt is the end
	// time. They are empty while the run is running, and with OverlapAllow.
	Outcome Outcome   `json:"outcome,omitempty"`
	Error   string    `json:"error,omitempty"`
	EndedAt time.Time `json:"endedAt,omitzero"`
}

// Outcome is the outcome of a run.
type Outcome string

// The values of Outcome.
const (
	OutcomeCompleted Outcome = "Completed"
	OutcomeFailed    Outcome = "Failed"
	OutcomeCancelled Outcome = "Cancelled"
)
