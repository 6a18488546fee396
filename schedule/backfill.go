package schedule

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

const (
	// MaxBackfillRuns is the maximum number of scheduled times in a window.
	MaxBackfillRuns = 10_000
	// MaxPendingBackfills is the maximum number of windows that wait for their backfill.
	MaxPendingBackfills = 100

	fieldWhen     = "when"
	fieldFrom     = "from"
	fieldBackfill = "backfill"
)

// BackfillWindow is a period in the past, both ends inclusive.
type BackfillWindow struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// ValidateWindow returns a *provider.FieldError if the schedule cannot backfill the window: its ends are reversed or out
// of range, it ends after now, or it contains more than MaxBackfillRuns times of the schedule.
func (s *Schedule) ValidateWindow(w BackfillWindow, now time.Time) error {
	switch {
	case w.From.IsZero() || !isWithin(w.From):
		return &provider.FieldError{Field: fieldFrom, Problem: wrongYear}
	case w.To.IsZero() || !isWithin(w.To):
		return &provider.FieldError{Field: "to", Problem: wrongYear}
	case w.To.Before(w.From):
		return &provider.FieldError{Field: "to", Problem: "is before from"}
	case w.To.After(now):
		return &provider.FieldError{Field: "to", Problem: "is in the future; a backfill covers only past times"}
	}
	p, err := s.plan(w.From)
	if err != nil {
		return err
	}
	n := 0
	for t := p.first(w); !t.IsZero(); t = p.first(w) {
		if n++; n > MaxBackfillRuns {
			problem := fmt.Sprintf("and to contain more than %d times of the schedule; split the window before %s",
				MaxBackfillRuns, t.UTC().Format(time.RFC3339))
			return &provider.FieldError{Field: fieldFrom, Problem: problem}
		}
		w.From = t.Add(1)
	}
	return nil
}

// first is the first time of a window; zero where there is none.
func (p *plan) first(w BackfillWindow) time.Time {
	t := p.next(w.From.Add(-1))
	if t.After(w.To) {
		return time.Time{}
	}
	return t
}

// reaching is the plan with times before the schedule was made: a rate that says not from when it counts goes back as well.
func (p *plan) reaching(from time.Time) *plan {
	r, counts := p.times.(rate)
	if !counts || !p.from.IsZero() || !from.Before(r.anchor) {
		return p
	}
	back := r.anchor.Sub(from).Truncate(r.period) + r.period
	return &plan{times: rate{r.anchor.Add(-back), r.period}, from: p.from, until: p.until}
}

// backfill has the times of a window started that are past by now: those that come are started by themselves. A window that waits already is not taken twice.
func backfill(k *keeper, w BackfillWindow) error {
	k.lookAtTheClock(k.ctx)
	w = BackfillWindow{From: w.From.UTC(), To: w.To.UTC()}
	if w.To.After(k.ProcessedUntil) {
		w.To = k.ProcessedUntil.UTC()
	}
	switch {
	case k.Deleting:
		return &provider.FieldError{Field: fieldBackfill, Problem: "is not possible: the schedule was deleted"}
	case !isWithin(w.From) || !isWithin(w.To):
		return &provider.FieldError{Field: fieldBackfill, Problem: wrongYear}
	case len(k.Backfills) >= MaxPendingBackfills:
		problem := fmt.Sprintf("exceeds the limit of %d waiting windows", MaxPendingBackfills)
		return &provider.FieldError{Field: fieldBackfill, Problem: problem}
	}
	for _, waits := range k.Backfills {
		if waits.To.Equal(w.To) && !waits.From.After(w.From) {
			return nil
		}
	}
	if !w.To.Before(w.From) {
		k.Backfills = append(k.Backfills, w)
	}
	return nil
}

// nextOfThePast takes the next time out of the windows that are backfilled; ok is false where there is none. What is reckoned is history, as by every look
// at the clock.
func nextOfThePast(k *keeper) (t time.Time, ok bool) {
	for len(k.Backfills) > 0 {
		w := k.Backfills[0]
		t := perdure.SideEffect(k.ctx, func() time.Time { return k.plan.reaching(w.From).first(w) })
		if !t.IsZero() {
			k.Backfills[0].From = t.Add(1).UTC()
			return t, true
		}
		k.Backfills = k.Backfills[1:]
	}
	return time.Time{}, false
}

// overlapPast deals with a time that came while a run of the past was under way: that is not the run before it, and neither leaves it out nor is cancelled
// for it. It is started before what else is backfilled.
func overlapPast(k *keeper, t time.Time) {
	switch k.Schedule.Overlap {
	case OverlapQueue, OverlapAllow:
	case OverlapCancel:
		k.leaveOut(int64(len(k.takeAll())), true)
	default:
		if len(k.Queue) > 0 {
			k.leaveOut(1, true)
			return
		}
	}
	k.queue(t)
}
