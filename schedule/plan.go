package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the times of a schedule must not depend on the files of a machine

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule/internal/cron"
)

// plan computes the times of a schedule.
type plan struct {
	times
	from, until time.Time
}

// times is a sequence of times. It has no start, and it has an end only if a cron expression restricts the years.
type times interface {
	// after returns the first time after t, or zero if no time follows.
	after(t time.Time) time.Time
}

// plan parses the times of the schedule. Rates count from anchor, unless From is set.
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
	case len(s.Expression) > maxExpressionBytes:
		problem := inputcheck.LengthProblem(s.Expression, 1, maxExpressionBytes)
		return nil, &provider.FieldError{Field: fieldExpression, Problem: problem}
	}
	if !s.From.IsZero() {
		anchor = s.From
	}

	at, err := parse(s.Expression, zone, anchor)
	if err != nil {
		return nil, &provider.FieldError{Field: fieldExpression, Problem: err.Error()}
	}
	return &plan{times: at, from: s.From, until: s.Until}, nil
}

// checkNew returns a *provider.FieldError for a schedule that earlier releases accepted, but that must not be created
// anymore. See cron.Expression.Problem.
func (p *plan) checkNew(when string) error {
	c, isCron := p.times.(wallClock)
	if !isCron || c.expression.Problem() == nil {
		return nil
	}
	return &provider.FieldError{Field: fieldExpression, Problem: fmt.Sprintf("%q: %v", when, c.expression.Problem())}
}

const wrongYear = "must be in the years 1970 to 2199"

// isWithin reports whether a time is zero or in the supported years. Outside these years, durations can overflow and
// times can be encoded as zero.
func isWithin(t time.Time) bool {
	year := t.UTC().Year()
	return t.IsZero() || 1970 <= year && year < 2200
}

// next returns the first scheduled time after t, or zero if no time follows.
func (p *plan) next(t time.Time) time.Time {
	if before := p.from.Add(-1); !p.from.IsZero() && t.Before(before) {
		t = before
	}
	due := p.after(t)
	if !p.until.IsZero() && due.After(p.until) {
		return time.Time{}
	}
	return due
}

// due contains the scheduled times of a period.
type due struct {
	// Times are the last MaxQueuedRuns times, and Before is the number of earlier times.
	Times  []time.Time `json:"times,omitempty"`
	Before int64       `json:"before,omitempty"`
	// Next is the first time after the period, or zero if no time follows.
	Next time.Time `json:"next,omitzero"`
}

// between returns the scheduled times after since, up to now.
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

const maxExpressionBytes = 256

var errExpression = errors.New(`must be like "rate(5 minutes)", "cron(0 2 * * ? *)", "0 2 * * MON-FRI" or "@daily"`)

// parse parses the expression of a schedule.
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
			return nil, fmt.Errorf("%q: %w", when, errExpression)
		}
		e, err = cron.ParseCrontab(when)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", when, err)
	}
	return wallClock{e, zone}, nil
}

const crontabFields = 5

// rate is a sequence of times with a fixed period from an anchor.
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

// wallClock is the sequence of times at which the local time of a zone matches a cron expression.
type wallClock struct {
	expression *cron.Expression
	zone       *time.Location
}

// followsElapsedTime reports whether a local time that occurs twice is due twice and a skipped local time is not due.
func (c wallClock) followsElapsedTime() bool { return c.expression.EveryHour() }

func (c wallClock) after(t time.Time) time.Time {
	t = t.In(c.zone)
	if c.followsElapsedTime() {
		return c.elapsed(t)
	}
	// a skipped time is due later than its local time, and possibly after the next time
	first := time.Time{}
	for wall := localTime(t).Add(-skippedBefore(t)); ; {
		if wall = c.expression.Next(wall); wall.IsZero() {
			return first
		}
		due := c.instant(wall)
		if due.After(t) && (first.IsZero() || due.Before(first)) {
			first = due
		}
		if skipped := !localTime(due).Equal(wall); !skipped && !first.IsZero() {
			return first
		}
	}
}

// elapsed returns the first time after t whose local time matches. It proceeds from one clock change to the next,
// because the offset is constant between two changes.
func (c wallClock) elapsed(t time.Time) time.Time {
	for wall := localTime(t); ; {
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
		t, wall = shift, localTime(shift).Add(-1)
	}
}

// skippedBefore returns the length of the local time that was skipped within a day before t.
func skippedBefore(t time.Time) time.Duration {
	_, then := t.Add(-longestShift).Zone()
	_, now := t.Zone()
	return max(time.Duration(now-then)*time.Second, 0)
}

// longestShift is longer than any clock change, including the days that Pacific islands have skipped, and shorter than
// the time between two changes.
const longestShift = 25 * time.Hour

// localTime returns the local time of t as a time in UTC.
func localTime(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instant returns the time at which a local time occurs. If it occurs twice, instant returns the first occurrence. If
// it is skipped, instant adds the length of the clock change.
func (c wallClock) instant(wall time.Time) time.Time {
	at := func(near time.Time) time.Time {
		_, offset := near.In(c.zone).Zone()
		return wall.Add(-time.Duration(offset) * time.Second).In(c.zone)
	}
	guess := at(wall)
	before, after := at(guess.Add(-longestShift)), at(guess.Add(longestShift))
	for _, t := range []time.Time{before, after} {
		if localTime(t).Equal(wall) {
			return t
		}
	}
	return before
}
