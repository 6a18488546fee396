package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// field describes one field of an expression.
type field struct {
	name     string
	min, max int
	// digits is the maximum length of a number.
	digits int
	// names are the lower-case names of values.
	names map[string]int
	// base is the value of bit 0 in the set of the field.
	base int
	// weekdays is set for days of the week. Their base is Sunday, and their ranges wrap around.
	weekdays bool
}

const wildcard, anyValue = "*", "?"

// isWildcard reports whether an item of a list matches every value.
func isWildcard(item string) bool { return item == wildcard || item == anyValue }

// items splits a list. Earlier releases accepted empty items and ignored them.
func items(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// parseItem adds the values of a list item to a set. An item is a wildcard, a value or a range, with or without a step.
func (f field) parseItem(set *bitset, item string) error {
	base, stepText, hasStep := strings.Cut(item, "/")
	step := 1
	if hasStep {
		var err error
		if step, err = f.parseStep(stepText); err != nil {
			return err
		}
	}
	first, last, err := f.parseBase(base, hasStep)
	if err != nil {
		return err
	}
	for v := first; v <= last; v += step {
		set.add(f.index(v))
	}
	return nil
}

// parseBase returns the first and the last value of an item without its step.
func (f field) parseBase(base string, hasStep bool) (first, last int, err error) {
	if isWildcard(base) {
		return f.min, f.max, nil
	}
	from, to, isRange := strings.Cut(base, "-")
	if first, err = f.parseValue(from); err != nil {
		return 0, 0, err
	}
	switch {
	case isRange:
		last, err = f.parseValue(to)
	case hasStep:
		last = f.max
	default:
		last = first
	}
	if err != nil || first <= last || !isRange {
		return first, last, err
	}
	if f.weekdays {
		return first, last + daysPerWeek, nil // the week is a cycle: FRI-MON, and MON-SUN where Sunday is the first day
	}
	return 0, 0, f.reversed(base, first, last)
}

// reversed returns the error for a range whose first value is greater than its last value.
func (f field) reversed(text string, first, last int) error {
	part := func(from, to int) string {
		if from == to {
			return strconv.Itoa(from)
		}
		return fmt.Sprintf("%d-%d", from, to)
	}
	return fmt.Errorf("%s %q: range is reversed; write %s,%s", f.name, text, part(first, f.max), part(f.min, last))
}

// parseValue parses a number or a name.
func (f field) parseValue(text string) (int, error) {
	if v, ok := f.names[strings.ToLower(text)]; ok {
		return v, nil
	}
	v, ok := number(text, f.digits)
	switch {
	case !ok:
		return 0, fmt.Errorf("%s %q: must be %s", f.name, text, f.valid())
	case v < f.min || v > f.limit():
		return 0, fmt.Errorf("%s %d: %s", f.name, v, f.outOfRange())
	}
	return v, nil
}

func (f field) parseStep(text string) (int, error) {
	step, ok := number(text, len("2199"))
	if !ok || step < 1 || step > f.max {
		return 0, fmt.Errorf("%s: step %q: must be 1 to %d", f.name, text, f.max)
	}
	return step, nil
}

// limit returns the greatest number that the field accepts. In a crontab, 0 and 7 are Sunday.
func (f field) limit() int {
	if f.weekdays {
		return daysPerWeek
	}
	return f.max
}

// index returns the bit of a value.
func (f field) index(v int) int {
	if f.weekdays {
		return (v - f.base) % daysPerWeek
	}
	return v - f.base
}

// valid describes the values of the field.
func (f field) valid() string {
	numbers := fmt.Sprintf("%d to %d", f.min, f.limit())
	switch {
	case f.weekdays:
		return numbers + " or SUN to SAT"
	case f.names != nil:
		return numbers + " or JAN to DEC"
	default:
		return numbers
	}
}

func (f field) outOfRange() string {
	if f.weekdays && f.base == 1 {
		return "in cron(…) days are 1, Sunday, to 7, Saturday, or SUN to SAT"
	}
	return "must be " + f.valid()
}

// number parses a decimal number with at most the given number of digits.
func number(text string, digits int) (int, bool) {
	if text == "" || len(text) > digits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.Atoi(text)
	return v, err == nil
}
