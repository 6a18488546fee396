package schedule

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

// FuzzPlan checks that an expression and a time zone are rejected with an error that names the field, or have times in
// order, which do not depend on where the computation starts.
func FuzzPlan(f *testing.F) {
	for _, s := range [][2]string{
		{"rate(5 minutes)", "Europe/Berlin"},
		{"cron(0 2 * * ? *)", "America/New_York"},
		{"0 2 * * MON-FRI", ""},
		{"@daily", "Australia/Lord_Howe"},
		{"30 2 29 2 *", "UTC"},
		{"0 2 31 4 *", "Local"},
		{"rate(0 days)", "../etc"},
		{"* * * * *", "Pacific/Apia"},
		{"cron(0 2 31 2 ? 2027)", "Africa/Casablanca"},
		{"", "Nowhere/Else"},
		{"59 23 * * *", "Asia/Kolkata"},
		{"cron()", "\x00"},
	} {
		f.Add(s[0], s[1], int64(1767355200), int64(0))
	}
	f.Add("rate(3650 days)", "UTC", int64(7258118399), int64(-1))
	f.Fuzz(func(t *testing.T, expression, zone string, now, from int64) {
		s := Schedule{
			ID: "s", Orchestration: "o", Expression: expression, TimeZone: zone, From: time.Unix(from, 0).UTC(),
		}
		if from == 0 {
			s.From = time.Time{}
		}
		start := time.Unix(now, 0).UTC()
		if !isWithin(start) {
			return
		}
		p, err := s.plan(start)
		if err != nil {
			e, ok := errors.AsType[*provider.FieldError](err)
			if !ok || e.Field != fieldExpression && e.Field != "timeZone" && e.Field != fieldFrom {
				t.Errorf("%q in %q: error without the field: %v", expression, zone, err)
			}
			return
		}
		_ = s.Validate() // must not panic
		for at := start; ; {
			next := p.next(at)
			if next.IsZero() || next.Sub(start) > 100*24*time.Hour {
				return
			}
			if !next.After(at) || !s.From.IsZero() && next.Before(s.From) {
				t.Fatalf("%q in %q: %v follows %v", expression, zone, next, at)
			}
			if same := p.next(next.Add(-1)); !same.Equal(next) {
				t.Fatalf("%q in %q: %v follows %v, but %v follows the time before it", expression, zone, next, at, same)
			}
			at = next.Add(next.Sub(start)) // fewer and fewer times
		}
	})
}

// FuzzDueTime checks that the ID of a run has its schedule and scheduled time, and that other IDs have none.
func FuzzDueTime(f *testing.F) {
	f.Add("nightly@2026-01-02T02:00:00Z")
	f.Add(RunID("a@b", time.Unix(1767355200, 5)))
	f.Add("nightly@2026-01-02T02:00:00+01:00~r2")
	f.Add("@")
	f.Add("schedule:nightly")
	f.Fuzz(func(t *testing.T, id string) {
		if due, ok := DueTime(RunID(id, time.Unix(1767355200, 5))); !ok || due.UnixNano() != 1767355200_000000005 {
			t.Errorf("a run of %q is due at %v, %v", id, due, ok)
		}
		if due, ok := DueTime(id); ok && due.UTC().Year() >= 0 && due.UTC().Year() <= 9999 {
			if again, ok := DueTime(RunID("s", due)); !ok || !again.Equal(due) {
				t.Errorf("%q is due at %v, then %v", id, due, again)
			}
		}
		if s, ok := ParseInstanceID(id); ok && InstanceID(s) != id {
			t.Errorf("%q is schedule %q", id, s)
		}
	})
}
