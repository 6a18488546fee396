package schedule

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// Status is what a schedule shows of itself: it is the custom status of its instance.
type Status struct {
	// Schedule is as it was put last, without its input.
	Schedule Schedule `json:"schedule"`
	// Paused is that it starts no runs but those that are asked for; nil: it is not paused.
	Paused *Pause `json:"paused,omitempty"`
	// Next is when it is due next; zero when it never is again, and while it is paused. With Skip and Queue the schedule rests while a run is under way, and
	// deals at its end with the times that came meanwhile: until then Next may have passed, and neither Queued nor Counts has them.
	Next time.Time `json:"next,omitzero"`
	// Running is the run that is under way; with Allow there is none, since the schedule does not wait.
	Running *Run `json:"running,omitempty"`
	// Queued is how many times wait for that to be over.
	Queued int `json:"queued,omitempty"`
	// Backfills are what is left of the windows that are backfilled.
	Backfills []Window `json:"backfills,omitempty"`
	// Last is the last run that is over; with Allow the last one that was started.
	Last *Run `json:"last,omitempty"`
	// Ending says that it was deleted, and waits for the end of its run.
	Ending bool `json:"ending,omitempty"`
	Counts
}

// fit cuts the texts of a status that is too large to be shown, of which others can write six bytes of JSON for each: a schedule that failed for it would
// start nothing any more. The rest, of the longest schedule with MaxBackfills windows, fits.
func fit(s Status) Status {
	for most := MaxMessageBytes / 2; most > 0; most /= 2 {
		if doc, err := json.Marshal(&s); err != nil || len(doc) <= perdure.MaxCustomStatusBytes {
			break
		}
		if s.Paused != nil {
			s.Paused = &Pause{At: s.Paused.At, Message: history.CutMessage(s.Paused.Message, most)}
		}
		if s.Last != nil {
			last := *s.Last
			last.Error = history.CutMessage(last.Error, most)
			s.Last = &last
		}
	}
	return s
}

// Counts count what a schedule has done since it was made.
type Counts struct {
	// Started is how many runs were started, Failed how many of them did not complete.
	Started int64 `json:"started"`
	Failed  int64 `json:"failed"`
	// Skipped is how many times came while a run was under way, and were left out.
	Skipped int64 `json:"skipped"`
	// Missed is how many times were missed, and not made up for.
	Missed int64 `json:"missed"`
}

// Run is one start of a schedule's orchestration.
type Run struct {
	InstanceID string `json:"instanceId"`
	// Due is the time for which it was started, StartedAt when it was.
	Due       time.Time `json:"due"`
	StartedAt time.Time `json:"startedAt"`
	// Outcome is how it ended, at EndedAt, and Error why, where it has not completed. They are empty as long as it runs, and with Allow.
	Outcome Outcome   `json:"outcome,omitempty"`
	Error   string    `json:"error,omitempty"`
	EndedAt time.Time `json:"endedAt,omitzero"`
}

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "Completed"
	Failed    Outcome = "Failed"
	Cancelled Outcome = "Cancelled"
)
