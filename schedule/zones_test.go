package schedule

import (
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/shortrun"
)

// unusualZones are zones with unusual clock changes: by half an hour or two, at midnight, on the first of a month, in
// Ramadan, with a skipped day, and a common one.
var unusualZones = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "America/Havana",
	"America/Asuncion", "America/Sao_Paulo", "America/Santiago",
	"Asia/Beirut", "Africa/Cairo", "Africa/Casablanca", "Asia/Gaza", "Asia/Tehran", "Asia/Amman", "Atlantic/Azores",
	"America/Nuuk", "America/Scoresbysund",
	"Pacific/Apia", "Pacific/Fakaofo", "Pacific/Chatham", "Asia/Pyongyang", "America/Caracas", "Africa/Juba",
	"Europe/Volgograd", "Antarctica/Casey", "Asia/Kathmandu",
}

// expressions has cron expressions and equivalent functions.
var expressions = map[string]func(wall time.Time) bool{
	"*/30 * * * *":      func(w time.Time) bool { return w.Minute()%30 == 0 },
	"7 */2 * * *":       func(w time.Time) bool { return w.Minute() == 7 && w.Hour()%2 == 0 },
	"@hourly":           func(w time.Time) bool { return w.Minute() == 0 },
	"15 * 1 * *":        func(w time.Time) bool { return w.Minute() == 15 && w.Day() == 1 },
	"30 2 * * *":        func(w time.Time) bool { return w.Minute() == 30 && w.Hour() == 2 },
	"@daily":            func(w time.Time) bool { return w.Minute() == 0 && w.Hour() == 0 },
	"@monthly":          func(w time.Time) bool { return w.Minute() == 0 && w.Hour() == 0 && w.Day() == 1 },
	"0,45 0-3,23 * * *": func(w time.Time) bool { return w.Minute()%45 == 0 && (w.Hour() < 4 || w.Hour() == 23) },
	"30 2 * * FRI-SUN": func(w time.Time) bool {
		return w.Minute() == 30 && w.Hour() == 2 && (w.Weekday() == 0 || w.Weekday() > 4)
	},
	"cron(10 1/2 ? * 1,6-7 *)": func(w time.Time) bool {
		return w.Minute() == 10 && w.Hour()%2 == 1 && (w.Weekday() == 0 || w.Weekday() > 4)
	},
}

// oracle returns the times of a period in a zone, by an enumeration of all minutes.
func oracle(zone *time.Location, from, to time.Time, elapsing bool, matches func(time.Time) bool) (all []time.Time) {
	seen := map[time.Time]bool{}
	due := map[time.Time]bool{}
	offsetBefore := 0
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		_, offset := t.In(zone).Zone()
		wall := t.Add(time.Duration(offset) * time.Second)
		if t != from && !elapsing {
			for shift := offset - offsetBefore; shift > 0; shift -= 60 { // each skipped minute
				if skipped := wall.Add(-time.Duration(shift) * time.Second); matches(skipped) {
					due[t.Add(time.Duration(offset-offsetBefore-shift)*time.Second)] = true
				}
			}
		}
		if offsetBefore = offset; matches(wall) && (elapsing || !seen[wall]) {
			due[t] = true
		}
		seen[wall] = true
	}
	for t := range due {
		all = append(all, t)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// From any time in any zone, the next time equals the first match of an enumeration of all minutes.
func TestPlan_clockChanges_matchEnumeration(t *testing.T) {
	t.Parallel()
	for _, name := range unusualZones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		_, shift := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).In(zone).ZoneBounds()
		for ; !shift.IsZero() && shift.Year() < shortrun.Few(2014, 2020); _, shift = shift.ZoneBounds() {
			from, to := shift.UTC().Add(-60*time.Hour).Truncate(time.Hour), shift.UTC().Add(60*time.Hour)
			for when, matches := range expressions {
				p := planOf(t, when, name)
				want := oracle(zone, from, to, p.times.(wallClock).followsElapsedTime(), matches)
				checkDue(t, p, name+" "+when, from.Add(12*time.Hour), to.Add(-30*time.Hour), want)
			}
		}
	}
}

func planOf(t *testing.T, when, zone string) *plan {
	t.Helper()
	s := Schedule{Expression: when, TimeZone: zone}
	p, err := s.plan(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkDue compares the next time from many times.
func checkDue(t *testing.T, p *plan, what string, from, to time.Time, want []time.Time) {
	t.Helper()
	for at := from; at.Before(to); at = at.Add(shortrun.Few(225*time.Minute, 45*time.Minute)) {
		i, _ := slices.BinarySearchFunc(want, at.Add(1), time.Time.Compare)
		got := p.next(at)
		if i < len(want) && !got.Equal(want[i]) || i == len(want) && got.Before(to) && !got.IsZero() {
			var next time.Time
			if i < len(want) {
				next = want[i]
			}
			t.Errorf("%s after %v: got %v, want %v", what, at, got.UTC(), next)
			return
		}
	}
}
