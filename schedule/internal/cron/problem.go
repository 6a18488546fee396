package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// eventBridgeProblem returns the reason why EventBridge Scheduler rejects fields that can be parsed, or nil.
func (t fieldTexts) eventBridgeProblem() error {
	if (t.day == anyValue) == (t.weekday == anyValue) {
		return errors.New(
			`exactly one of day and day of week must be "?", such as cron(0 2 * * ? *) or cron(0 2 ? * MON *)`,
		)
	}
	if strings.Contains(t.weekday, "#") && strings.Contains(t.weekday, ",") {
		return fmt.Errorf("day of week %q: a list must not contain #", t.weekday)
	}
	return t.listProblem()
}

// crontabProblem returns the reason why different crontabs interpret an expression differently, or nil.
func (t fieldTexts) crontabProblem() error {
	if t.isStepped(t.day) && !isWildcard(t.weekday) || t.isStepped(t.weekday) && !isWildcard(t.day) {
		return fmt.Errorf(`day %q and day of week %q: if both are restricted, neither may have a step of *; `+
			`write a range, such as 1-31/2, to match either of them`,
			t.day, t.weekday)
	}
	return t.listProblem()
}

func (fieldTexts) isStepped(text string) bool { return strings.Contains(text, wildcard+"/") }

// listProblem returns an error for wildcards and empty items in lists, which are invalid in both syntaxes.
func (t fieldTexts) listProblem() error {
	for _, f := range []struct{ name, text string }{
		{minuteField.name, t.minute},
		{hourField.name, t.hour},
		{dayField.name, t.day},
		{monthField.name, t.month},
		{crontabWeekday.name, t.weekday},
		{yearField.name, t.year},
	} {
		list := strings.Split(f.text, ",")
		isDay := f.name == dayField.name || f.name == crontabWeekday.name
		switch {
		case len(list) > 1 && slices.ContainsFunc(list, isWildcard):
			return fmt.Errorf("%s %q: a list must not contain %s", f.name, f.text, wildcard)
		case slices.Contains(list, ""):
			return fmt.Errorf("%s %q: the list has an empty item", f.name, f.text)
		case strings.Contains(f.text, anyValue) && (!isDay || f.text != anyValue):
			return fmt.Errorf(`%s %q: "?" is only valid alone, for day and day of week`, f.name, f.text)
		}
	}
	return nil
}
