package inline

import (
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
)

// list is a list of activities, sorted by ID.
type list []*activity

// nextEnd returns the next time at which a running activity must be stopped, or at which the wait for stopped code
// ends. It returns zero if there is no such time.
func (l list) nextEnd() (at time.Time) {
	for _, a := range l {
		switch {
		case a.phase == running:
			at = intake.Earlier(at, a.until)
		case a.phase == released && !a.awaitUntil.IsZero():
			at = intake.Earlier(at, a.awaitUntil)
		}
	}
	return at
}

// lastEnd returns the time at which the last running activity must have ended.
func (l list) lastEnd() (at time.Time) {
	for _, a := range l {
		if a.phase == running {
			at = later(at, a.until)
		}
	}
	return at
}

// isBusy reports whether an outcome may still arrive, or the session still waits for stopped code.
func (l list) isBusy(now time.Time) bool {
	return slices.ContainsFunc(l, func(a *activity) bool {
		return a.phase == running || a.phase == waiting || a.phase == released && now.Before(a.awaitUntil)
	})
}

func (l list) count(p phase) (n int) {
	for _, a := range l {
		if a.phase == p {
			n++
		}
	}
	return n
}

func (l list) find(id int64) *activity {
	i, ok := slices.BinarySearchFunc(l, id, func(a *activity, id int64) int { return int(a.event.ID - id) })
	if !ok {
		return nil
	}
	return l[i]
}
