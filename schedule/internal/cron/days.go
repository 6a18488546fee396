package cron

import (
	"fmt"
	"strings"
	"time"
)

// days is the set of days that the two day fields of an expression select.
type days struct {
	// The day of the month. byDate is false if the field has a wildcard.
	byDate      bool
	dates       bitset
	last        bool   // L
	lastWeekday bool   // LW
	nearest     bitset // 15W

	// The day of the week. byWeekday is false if the field has a wildcard.
	byWeekday bool
	weekdays  bitset
	lastOf    bitset // 5L
	nth       bitset // 5#3: (3-1)*7 + 5
}

// month contains the number of days of a month and the day of the week on which it begins.
type month struct {
	length int
	begins time.Weekday
}

func monthOf(year, number int) month {
	first := time.Date(year, time.Month(number), 1, 0, 0, 0, 0, time.UTC)
	return month{first.AddDate(0, 1, -1).Day(), first.Weekday()}
}

func (m month) weekday(date int) int { return (int(m.begins) + date - 1) % daysPerWeek }

// in returns the selected dates of a month. If both fields are restricted, a date needs to match one of them, as in
// crontab(5).
func (d *days) in(m month) (selected bitset) {
	for date := 1; date <= m.length; date++ {
		var matches bool
		switch {
		case d.byDate && d.byWeekday:
			matches = d.matchesDate(m, date) || d.matchesWeekday(m, date)
		case d.byDate:
			matches = d.matchesDate(m, date)
		case d.byWeekday:
			matches = d.matchesWeekday(m, date)
		default:
			matches = true
		}
		if matches {
			selected.add(date)
		}
	}
	return selected
}

func (d *days) matchesDate(m month, date int) bool {
	return d.dates.has(date) || d.last && date == m.length ||
		d.lastWeekday && date == m.nearestWeekday(m.length) || d.isNearest(m, date)
}

// isNearest reports whether a date is the weekday nearest to one of the dates in d.nearest.
func (d *days) isNearest(m month, date int) bool {
	for near, ok := d.nearest.next(1); ok && near <= m.length; near, ok = d.nearest.next(near + 1) {
		if m.nearestWeekday(near) == date {
			return true
		}
	}
	return false
}

// nearestWeekday returns the weekday that is nearest to a date, without leaving the month.
func (m month) nearestWeekday(date int) int {
	switch weekday := time.Weekday(m.weekday(date)); {
	case weekday == time.Saturday && date > 1:
		return date - 1
	case weekday == time.Saturday:
		return date + 2
	case weekday == time.Sunday && date < m.length:
		return date + 1
	case weekday == time.Sunday:
		return date - 2
	default:
		return date
	}
}

func (d *days) matchesWeekday(m month, date int) bool {
	weekday := m.weekday(date)
	return d.weekdays.has(weekday) || d.lastOf.has(weekday) && date > m.length-daysPerWeek ||
		d.nth.has((date-1)/daysPerWeek*daysPerWeek+weekday)
}

// parseDate reads the day of the month.
func (d *days) parseDate(text string) error {
	d.byDate = true
	for _, item := range items(text) {
		if isWildcard(item) {
			d.byDate = false
		}
		if err := d.parseDateItem(item); err != nil {
			return err
		}
	}
	return nil
}

func (d *days) parseDateItem(item string) error {
	switch upper := strings.ToUpper(item); {
	case upper == "L":
		d.last = true
	case upper == "LW":
		d.lastWeekday = true
	case strings.HasSuffix(upper, "W"):
		near, err := dayField.parseValue(upper[:len(upper)-1])
		if err != nil {
			return err
		}
		d.nearest.add(near)
	default:
		return dayField.parseItem(&d.dates, item)
	}
	return nil
}

// parseWeekday reads the day of the week.
func (d *days) parseWeekday(f field, text string) error {
	d.byWeekday = true
	for _, item := range items(text) {
		if isWildcard(item) {
			d.byWeekday = false
		}
		if err := d.parseWeekdayItem(f, item); err != nil {
			return err
		}
	}
	return nil
}

func (d *days) parseWeekdayItem(f field, item string) error {
	upper := strings.ToUpper(item)
	if upper == "L" && f.base == 1 {
		d.weekdays.add(int(time.Saturday)) // the last day of the week, as in EventBridge Scheduler
		return nil
	}
	if day, isLast := strings.CutSuffix(upper, "L"); isLast {
		weekday, err := f.parseValue(day)
		if err != nil {
			return err
		}
		d.lastOf.add(f.index(weekday))
		return nil
	}
	day, week, isNth := strings.Cut(item, "#")
	if !isNth {
		return f.parseItem(&d.weekdays, item)
	}
	weekday, err := f.parseValue(day)
	if err != nil {
		return err
	}
	n, ok := number(week, 1)
	if !ok || n < 1 || n > 5 {
		return fmt.Errorf("%s %q: week of the month must be 1 to 5", f.name, item)
	}
	d.nth.add((n-1)*daysPerWeek + f.index(weekday))
	return nil
}
