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
	// MaxPendingBackfills is the maximum number of windows that wait for a backfill.
	MaxPendingBackfills = 100

	fieldExpression = "when"
	fieldFrom       = "from"
	fieldBackfill   = "backfill"
)

// BackfillWindow is a period in the past from From to To, inclusive.
type BackfillWindow struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// ValidateWindow returns a *provider.FieldError if the schedule cannot backfill the window. A window is invalid if its
// ends are reversed or out of range, or if it ends after now. It is also invalid if it contains more than
// MaxBackfillRuns scheduled times.
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
			problem := fmt.Sprintf("and to contain more than %d scheduled times; split the window before %s",
				MaxBackfillRuns, t.UTC().Format(time.RFC3339))
			return &provider.FieldError{Field: fieldFrom, Problem: problem}
		}
		w.From = t.Add(1)
	}
	return nil
}

// first returns the first scheduled time in a window, or zero if the window contains no time.
func (p *plan) first(w BackfillWindow) time.Time {
	t := p.next(w.From.Add(-1))
	if t.After(w.To) {
		return time.Time{}
	}
	return t
}

// startingBefore returns a plan that includes the times from from, even before the schedule was created. Only a rate
// without From needs a different plan.
func (p *plan) startingBefore(from time.Time) *plan {
	r, isRate := p.times.(rate)
	if !isRate || !p.from.IsZero() || !from.Before(r.anchor) {
		return p
	}
	back := r.anchor.Sub(from).Truncate(r.period) + r.period
	return &plan{times: rate{r.anchor.Add(-back), r.period}, from: p.from, until: p.until}
}

// addBackfill adds a window, up to the times that were already processed. Later times start without a backfill. A
// window that a waiting window includes is ignored.
func (s *scheduler) addBackfill(w BackfillWindow) error {
	s.processDue(s.ctx)
	w = BackfillWindow{From: w.From.UTC(), To: w.To.UTC()}
	if w.To.After(s.ProcessedUntil) {
		w.To = s.ProcessedUntil.UTC()
	}
	switch {
	case s.Deleting:
		return &provider.FieldError{Field: fieldBackfill, Problem: "is not possible: the schedule was deleted"}
	case !isWithin(w.From) || !isWithin(w.To):
		return &provider.FieldError{Field: fieldBackfill, Problem: wrongYear}
	case len(s.Backfills) >= MaxPendingBackfills:
		problem := fmt.Sprintf("exceeds the limit of %d waiting windows", MaxPendingBackfills)
		return &provider.FieldError{Field: fieldBackfill, Problem: problem}
	}
	for _, waiting := range s.Backfills {
		if waiting.To.Equal(w.To) && !waiting.From.After(w.From) {
			return nil
		}
	}
	if !w.To.Before(w.From) {
		s.Backfills = append(s.Backfills, w)
	}
	return nil
}

// nextBackfill removes and returns the next time of the windows. ok is false if no time is left. The times are recorded
// in the history, as in processDue.
func (s *State) nextBackfill(ctx *perdure.OrchestrationContext, p *plan) (t time.Time, ok bool) {
	for len(s.Backfills) > 0 {
		w := s.Backfills[0]
		t := perdure.SideEffect(ctx, func() time.Time { return p.startingBefore(w.From).first(w) })
		if !t.IsZero() {
			s.Backfills[0].From = t.Add(1).UTC()
			return t, true
		}
		s.Backfills = s.Backfills[1:]
	}
	return time.Time{}, false
}
