package schedule

import (
	"strings"
	"testing"
	"time"
)

// at parses a time such as "2026-03-29 03:30" in a zone.
func at(t *testing.T, zone, text string) time.Time {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	when, err := time.ParseInLocation("2006-01-02 15:04", text, loc)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestPlan_next(t *testing.T) {
	t.Parallel()
	const berlin = "Europe/Berlin"
	for name, tt := range map[string]struct {
		when, zone, after string
		want              string // in UTC
	}{
		"a rate":         {"rate(5 minutes)", "", "2026-11-23 10:02", "23T10:05 23T10:10 23T10:15"},
		"a rate of one":  {"rate(1 hour)", "", "2026-11-23 10:02", "23T11:00 23T12:00 23T13:00"},
		"a rate of days": {"rate(2 days)", "", "2026-11-01 00:00", "03T00:00 05T00:00 07T00:00"},
		"each night":     {"30 2 * * *", "", "2026-11-23 10:02", "24T02:30 25T02:30 26T02:30"},
		"of a zone":      {"30 2 * * *", berlin, "2026-11-23 10:02", "24T01:30 25T01:30 26T01:30"},
		"of half an hour's zone": {
			"0 0 * * *", "Asia/Kolkata", "2026-11-23 10:02", "23T18:30 24T18:30 25T18:30",
		},
		"workdays":                     {"0 9 * * MON-FRI", "", "2026-11-20 10:00", "23T09:00 24T09:00 25T09:00"},
		"workdays by number":           {"0 9 * * 1-5", "", "2026-11-20 10:00", "23T09:00 24T09:00 25T09:00"},
		"workdays as AWS counts":       {"cron(0 9 ? * 2-6 *)", "", "2026-11-20 10:00", "23T09:00 24T09:00 25T09:00"},
		"the third Friday":             {"cron(0 9 ? * 6#3 *)", "", "2026-11-01 00:00", "20T09:00 18T09:00 15T09:00"},
		"the last day":                 {"cron(0 9 L * ? *)", "", "2026-11-01 00:00", "30T09:00 31T09:00 31T09:00"},
		"a year":                       {"cron(0 9 1,2 1 ? 2027)", "", "2026-11-01 00:00", "01T09:00 02T09:00 never"},
		"daily":                        {"@daily", berlin, "2026-11-23 10:02", "23T23:00 24T23:00 25T23:00"},
		"put forward: skipped":         {"30 2 * * *", berlin, "2026-03-28 12:00", "29T01:30 30T00:30 31T00:30"},
		"put forward: the hour after":  {"30 3 * * *", berlin, "2026-03-28 12:00", "29T01:30 30T01:30 31T01:30"},
		"put forward: from within":     {"30 2 * * *", berlin, "2026-03-29 03:00", "29T01:30 30T00:30 31T00:30"},
		"put forward: from behind":     {"30 2 * * *", berlin, "2026-03-29 03:30", "30T00:30 31T00:30 01T00:30"},
		"put forward: by elapsed time": {"*/30 * * * *", berlin, "2026-03-29 01:30", "29T01:00 29T01:30 29T02:00"},
		"put back: once, the first":    {"30 2 * * *", berlin, "2026-10-24 12:00", "25T00:30 26T01:30 27T01:30"},
		"put back: by elapsed time":    {"*/30 * * * *", berlin, "2026-10-25 01:30", "25T00:00 25T00:30 25T01:00"},
		"put back: every hour":         {"0 * * * *", berlin, "2026-10-25 01:30", "25T00:00 25T01:00 25T02:00"},
		"put back: hourly":             {"@hourly", berlin, "2026-10-25 01:30", "25T00:00 25T01:00 25T02:00"},
		"midnight that does not exist": {
			"0 0 * * *", "Africa/Cairo", "2026-04-23 12:00", "23T22:00 24T21:00 25T21:00",
		},
		"put forward by half an hour": {
			"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "03T15:45 04T15:15 05T15:15",
		},
		"put back by half an hour: once": {
			"45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", "04T14:45 05T15:15 06T15:15",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Schedule{Expression: tt.when, TimeZone: tt.zone}
			p, err := s.plan(at(t, "", "2026-11-01 00:00"))
			if err != nil {
				t.Fatal(err)
			}
			due := at(t, tt.zone, tt.after)
			var got []string
			for range 3 {
				if due = p.next(due); due.IsZero() {
					got = append(got, "never")
					break
				}
				got = append(got, due.UTC().Format("02T15:04"))
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("got %s, want %s", g, tt.want)
			}
		})
	}
}

func TestPlan_fromAndUntil_limitTimes(t *testing.T) {
	t.Parallel()
	noon := at(t, "", "2026-11-23 12:00")
	s := Schedule{Expression: "rate(1 hour)", From: noon, Until: noon.Add(2 * time.Hour)}
	p, err := s.plan(noon.Add(-30 * time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	d := p.between(noon.Add(-time.Hour), noon.Add(time.Hour))
	if len(d.Times) != 2 || !d.Times[0].Equal(noon) || !d.Next.Equal(s.Until) {
		t.Errorf("From is inclusive: got %+v", d)
	}
	if d := p.between(noon.Add(time.Hour), noon.Add(5*time.Hour)); len(d.Times) != 1 || !d.Next.IsZero() {
		t.Errorf("Until is inclusive: got %+v", d)
	}
}

// A schedule that missed a year of minutes keeps a limited number of times, and counts the others.
func TestPlan_between_countsDroppedTimes(t *testing.T) {
	t.Parallel()
	began := at(t, "", "2026-01-01 00:00")
	for _, when := range []string{"* * * * *", "rate(1 minute)"} {
		s := Schedule{Expression: when}
		p, err := s.plan(began)
		if err != nil {
			t.Fatal(err)
		}
		now := began.AddDate(1, 0, 0)
		d := p.between(began, now)
		if len(d.Times) != MaxQueuedRuns || d.Before != 365*24*60-MaxQueuedRuns ||
			!d.Times[MaxQueuedRuns-1].Equal(now) || !d.Next.Equal(now.Add(time.Minute)) {
			t.Errorf("%s: got %d times, %d earlier, next %v", when, len(d.Times), d.Before, d.Next)
		}
	}
}

func TestPlan_invalidSchedule_isAnError(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Schedule{
		`when "": must be like`:                               {},
		`when "often": must be like`:                          {Expression: "often"},
		`when "rate(5 seconds)": must be like`:                {Expression: "rate(5 seconds)"},
		`when rate must be 1 or more`:                         {Expression: "rate(0 minutes)"},
		`when rate must be at most 3650 days`:                 {Expression: "rate(99999 days)"},
		`when "cron(0 2 * * ?)": cron(…) has 5 fields, not 6`: {Expression: "cron(0 2 * * ?)"},
		`when "0 25 * * *": `:                                 {Expression: "0 25 * * *"},
		`when "* * 30 2 *": matches no time`:                  {Expression: "* * 30 2 *"},
		`when "0 0 2 * * ? *": must be like`:                  {Expression: "0 0 2 * * ? *"},
		`timeZone "Berlin" is not an IANA time zone`:          {Expression: "@daily", TimeZone: "Berlin"},
		`timeZone "Local" is not an IANA time zone`:           {Expression: "@daily", TimeZone: "Local"},
		`until is before from`: {
			Expression: "@daily", From: time.Unix(9, 0), Until: time.Unix(8, 0),
		},
		`when "@often": `: {Expression: "@often"},
		`when "cron(0 2 ? * 8 *)": day of week 8: `:     {Expression: "cron(0 2 ? * 8 *)"},
		`when "cron(0 2 ? * 0-3 *)": day of week 0: in`: {Expression: "cron(0 2 ? * 0-3 *)"},
	} {
		_, err := s.plan(time.Time{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
