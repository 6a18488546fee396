package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // what a schedule is due by must not depend on the files of a machine

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule/internal/cron"
)

// plan is when a schedule is due.
type plan struct {
	times
	from, until time.Time
}

// times are points in time without a first and, but for years in a cron expression, without a last.
type times interface {
	// after is the first of them that is later than t; zero where there is none.
	after(t time.Time) time.Time
}

// plan reads what the schedule says of its times. Rates count from anchor, unless the schedule says from when.
func (s *Schedule) plan(anchor time.Time) (*plan, error) {
	zone, err := time.LoadLocation(s.TimeZone)
	switch {
	case err != nil || s.TimeZone == "Local":
		problem := fmt.Sprintf("%q is not an IANA time zone, such as Europe/Berlin", provider.Excerpt(s.TimeZone))
		return nil, &provider.FieldError{Field: "timeZone", Problem: problem}
	case !s.Until.IsZero() && s.Until.Before(s.From):
		return nil, &provider.FieldError{Field: "until", Problem: "is before from"}
	case !isWithin(s.From):
		return nil, &provider.FieldError{Field: fieldFrom, Problem: wrongYear}
	case !isWithin(s.Until):
		return nil, &provider.FieldError{Field: "until", Problem: wrongYear}
	case len(s.Expression) > maxWhenBytes:
		return nil, &provider.FieldError{Field: fieldWhen, Problem: provider.LengthProblem(s.Expression, 1, maxWhenBytes)}
	}
	if !s.From.IsZero() {
		anchor = s.From
	}

	at, err := parse(s.Expression, zone, anchor)
	if err != nil {
		return nil, &provider.FieldError{Field: fieldWhen, Problem: err.Error()}
	}
	return &plan{times: at, from: s.From, until: s.Until}, nil
}

// checkNew returns a *provider.FieldError if the schedule was accepted by earlier releases, but must not be created: see
// cron.Expression.Problem.
func (p *plan) checkNew(when string) error {
	c, isCron := p.times.(wallClock)
	if !isCron || c.expression.Problem() == nil {
		return nil
	}
	return &provider.FieldError{Field: fieldWhen, Problem: fmt.Sprintf("%q: %v", when, c.expression.Problem())}
}

const wrongYear = "must be in the years 1970 to 2199"

// isWithin leaves out times from which the nanoseconds to others cannot be counted, or that are written as none.
func isWithin(t time.Time) bool {
	year := t.UTC().Year()
	return t.IsZero() || 1970 <= year && year < 2200
}

// next is the first time later than t at which the schedule is due; zero where there is none.
func (p *plan) next(t time.Time) time.Time {
	if just := p.from.Add(-1); !p.from.IsZero() && t.Before(just) {
		t = just
	}
	due := p.after(t)
	if !p.until.IsZero() && due.After(p.until) {
		return time.Time{}
	}
	return due
}

// due is what has come due within some time.
type due struct {
	// Times are the last MaxQueuedRuns of them, Before is how many came before these.
	Times  []time.Time `json:"times,omitempty"`
	Before int64       `json:"before,omitempty"`
	// Next is the first time after; zero where there is none.
	Next time.Time `json:"next,omitzero"`
}

// between is what has come due after since, until now inclusive.
func (p *plan) between(since, now time.Time) due {
	var d due
	for d.Next = p.next(since); !d.Next.IsZero() && !d.Next.After(now); d.Next = p.next(d.Next) {
		if len(d.Times) == MaxQueuedRuns {
			d.Times = d.Times[1:]
			d.Before++
		}
		d.Times = append(d.Times, d.Next.UTC())
	}
	if !d.Next.IsZero() {
		d.Next = d.Next.UTC()
	}
	return d
}

var (
	rateExpression = regexp.MustCompile(`^rate\((\d{1,6}) (minute|hour|day)s?\)$`)
	cronExpression = regexp.MustCompile(`^cron\((.*)\)$`)
)

const maxWhenBytes = 256

var errWhen = errors.New(`must be like "rate(5 minutes)", "cron(0 2 * * ? *)", "0 2 * * MON-FRI" or "@daily"`)

// parse reads when a schedule is due.
func parse(when string, zone *time.Location, anchor time.Time) (times, error) {
	if m := rateExpression.FindStringSubmatch(when); m != nil {
		return parseRate(m[1], m[2], anchor)
	}
	var e *cron.Expression
	var err error
	if m := cronExpression.FindStringSubmatch(when); m != nil {
		e, err = cron.ParseEventBridge(m[1])
	} else {
		if n := len(strings.Fields(when)); n != crontabFields && !strings.HasPrefix(when, "@") {
			return nil, fmt.Errorf("%q: %w", when, errWhen)
		}
		e, err = cron.ParseCrontab(when)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", when, err)
	}
	return wallClock{e, zone}, nil
}

const crontabFields = 5

// rate is due at each whole number of periods after an anchor.
type rate struct {
	anchor time.Time
	period time.Duration
}

func parseRate(number, unit string, anchor time.Time) (times, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n == 0 {
		return nil, errors.New("rate must be 1 or more")
	}
	units := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	const longest = 3650 * 24 * time.Hour
	if time.Duration(n) > longest/units[unit] {
		return nil, fmt.Errorf("rate must be at most %d days", longest/units["day"])
	}
	return rate{anchor, time.Duration(n) * units[unit]}, nil
}

func (r rate) after(t time.Time) time.Time {
	if t.Before(r.anchor) {
		return r.anchor
	}
	return t.Add(r.period - t.Sub(r.anchor)%r.period)
}

// wallClock is due when the clock of a zone shows a time that matches a cron expression.
type wallClock struct {
	expression *cron.Expression
	zone       *time.Location
}

// goesByElapsedTime reports whether a time that the clock shows twice is due twice, and one that it skips not at all.
func (c wallClock) goesByElapsedTime() bool { return c.expression.EveryHour() }

func (c wallClock) after(t time.Time) time.Time {
	t = t.In(c.zone)
	if c.goesByElapsedTime() {
		return c.passing(t)
	}
	// A time that was skipped is due later than the clock says, and perhaps later than the next.
	first := time.Time{}
	for wall := onTheWall(t).Add(-skippedBefore(t)); ; {
		if wall = c.expression.Next(wall); wall.IsZero() {
			return first
		}
		due := c.instant(wall)
		if due.After(t) && (first.IsZero() || due.Before(first)) {
			first = due
		}
		if skipped := !onTheWall(due).Equal(wall); !skipped && !first.IsZero() {
			return first
		}
	}
}

// passing is the first moment after t at which the clock shows one of the times. It goes from one shift of the clock to
// the next, since between two shifts the clock and the time that passes agree.
func (c wallClock) passing(t time.Time) time.Time {
	for wall := onTheWall(t); ; {
		next := c.expression.Next(wall)
		if next.IsZero() {
			return next
		}

		_, offset := t.Zone()
		due := next.Add(-time.Duration(offset) * time.Second)
		_, shift := t.ZoneBounds()
		if shift.IsZero() || due.Before(shift) {
			return due
		}
		t, wall = shift, onTheWall(shift).Add(-1)
	}
}

// skippedBefore is by how much the clock was put forward in the day before.
func skippedBefore(t time.Time) time.Duration {
	_, then := t.Add(-longestShift).Zone()
	_, now := t.Zone()
	return max(time.Duration(now-then)*time.Second, 0)
}

// longestShift is more than any clock is put forward or back by, with the days that Pacific islands have left out. Two shifts are further apart.
const longestShift = 25 * time.Hour

// onTheWall is what the clock on the wall shows, as if it were of UTC.
func onTheWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instant is when the clock on the wall shows a time: the first of two, and as much later as the clock is put forward where it never does.
func (c wallClock) instant(wall time.Time) time.Time {
	at := func(near time.Time) time.Time {
		_, offset := near.In(c.zone).Zone()
		return wall.Add(-time.Duration(offset) * time.Second).In(c.zone)
	}
	guess := at(wall)
	before, behind := at(guess.Add(-longestShift)), at(guess.Add(longestShift))
	for _, t := range []time.Time{before, behind} {
		if onTheWall(t).Equal(wall) {
			return t
		}
	}
	return before
}
