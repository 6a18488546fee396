package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Expression is a parsed cron expression. It does not change and is safe for concurrent use.
type Expression struct {
	minutes, hours, months, years bitset
	days                          days
	everyHour                     bool
	problem                       error
}

// fieldTexts are the fields of an expression as written.
type fieldTexts struct{ minute, hour, day, month, weekday, year string }

// ParseCrontab parses five fields (minute, hour, day, month and day of the week; 0 and 7 are Sunday), or @hourly,
// @daily, @weekly, @monthly, @yearly or @annually. If both day fields are restricted, a day must match at least one of
// them.
func ParseCrontab(text string) (*Expression, error) {
	if full, ok := shorthands[text]; ok {
		text = full
	} else if strings.HasPrefix(text, "@") {
		return nil, errors.New("must be @hourly, @daily, @weekly, @monthly, @yearly or @annually")
	}
	f := strings.Fields(text)
	if len(f) != 5 {
		return nil, fmt.Errorf("has %d fields, not 5: minute, hour, day, month and day of week", len(f))
	}
	texts := fieldTexts{f[0], f[1], f[2], f[3], f[4], wildcard}
	return parse(texts, crontabWeekday, texts.crontabProblem())
}

// ParseEventBridge parses the six fields of EventBridge Scheduler's cron(…): minute, hour, day, month, day
// of the week (1 is Sunday) and year (1970 to 2199).
func ParseEventBridge(text string) (*Expression, error) {
	f := strings.Fields(text)
	if len(f) != 6 {
		return nil, fmt.Errorf("cron(…) has %d fields, not 6: minute, hour, day, month, day of week and year", len(f))
	}
	texts := fieldTexts{f[0], f[1], f[2], f[3], f[4], f[5]}
	return parse(texts, eventBridgeWeekday, texts.eventBridgeProblem())
}

// Problem returns the reason why a new schedule must not use the expression, or nil. Either EventBridge Scheduler
// rejects the expression, or crontabs disagree on its meaning. Earlier releases accepted such expressions, so stored
// schedules can contain them.
func (e *Expression) Problem() error { return e.problem }

// EveryHour reports whether the hours begin with a wildcard.
func (e *Expression) EveryHour() bool { return e.everyHour }

func parse(texts fieldTexts, weekday field, problem error) (*Expression, error) {
	e := &Expression{everyHour: strings.HasPrefix(texts.hour, wildcard), problem: problem}
	for _, part := range []struct {
		field field
		text  string
		set   *bitset
	}{
		{minuteField, texts.minute, &e.minutes},
		{hourField, texts.hour, &e.hours},
		{monthField, texts.month, &e.months},
		{yearField, texts.year, &e.years},
	} {
		if len(items(part.text)) == 0 {
			return nil, fmt.Errorf("%s %q: must be %s", part.field.name, part.text, part.field.valid())
		}
		for _, item := range items(part.text) {
			if err := part.field.parseItem(part.set, item); err != nil {
				return nil, err
			}
		}
	}
	if err := e.days.parseDate(texts.day); err != nil {
		return nil, err
	}
	if err := e.days.parseWeekday(weekday, texts.weekday); err != nil {
		return nil, err
	}
	if e.Next(time.Time{}).IsZero() {
		return nil, errors.New("matches no time")
	}
	return e, nil
}

// Next returns the first minute after a wall-clock time that matches, or the zero time if no minute matches until the
// end of 2199. The wall-clock time is in UTC, and so is the result.
func (e *Expression) Next(wall time.Time) time.Time {
	wall = wall.Truncate(time.Minute).Add(time.Minute)
	if wall.Year() < firstYear {
		wall = time.Date(firstYear, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	from := wall.Year()
	for year, ok := e.years.next(min(from, lastYear+1) - firstYear); ok; year, ok = e.years.next(year + 1) {
		if found := e.inYear(firstYear+year, wall); !found.IsZero() {
			return found
		}
	}
	return time.Time{}
}

// inYear returns the first matching minute of a year that is not before a time.
func (e *Expression) inYear(year int, notBefore time.Time) time.Time {
	first := 1
	if notBefore.Year() == year {
		first = int(notBefore.Month())
	}
	for number, ok := e.months.next(first); ok; number, ok = e.months.next(number + 1) {
		start := time.Date(year, time.Month(number), 1, 0, 0, 0, 0, time.UTC)
		if start.Before(notBefore) {
			start = notBefore
		}
		dates := e.days.in(monthOf(year, number))
		for date, ok := dates.next(start.Day()); ok; date, ok = dates.next(date + 1) {
			earliest := 0
			if date == start.Day() {
				earliest = start.Hour()*60 + start.Minute()
			}
			if hour, minute, ok := e.inDay(earliest); ok {
				return time.Date(year, time.Month(number), date, hour, minute, 0, 0, time.UTC)
			}
		}
	}
	return time.Time{}
}

// inDay returns the first matching time of a day that is at least earliest minutes after midnight.
func (e *Expression) inDay(earliest int) (hour, minute int, ok bool) {
	hour, ok = e.hours.next(earliest / 60)
	if !ok {
		return 0, 0, false
	}
	if hour == earliest/60 {
		if minute, ok = e.minutes.next(earliest % 60); ok {
			return hour, minute, true
		}
		if hour, ok = e.hours.next(hour + 1); !ok {
			return 0, 0, false
		}
	}
	minute, ok = e.minutes.next(0)
	return hour, minute, ok
}
