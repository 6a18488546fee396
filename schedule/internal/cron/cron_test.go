package cron_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/schedule/internal/cron"
)

var generated = flag.Int(
	"expressions", 3000, "how many generated expressions TestNext_generatedExpression_matchesEnumeration tries",
)

// syntax generates expressions in one of the two syntaxes.
type syntax struct {
	name   string
	parse  func(string) (*cron.Expression, error)
	sunday int
}

var syntaxes = []syntax{{"crontab", cron.ParseCrontab, 0}, {"EventBridge", cron.ParseEventBridge, 1}}

// clause is a field of a generated expression: its text, and its matching times according to the documentation.
type clause struct {
	text       string
	matches    func(time.Time) bool
	restricted bool
}

var everything = clause{text: "*", matches: func(time.Time) bool { return true }}

// numeric generates a field of numbers from low to high. of returns the value of the field at a time.
func numeric(r *rand.Rand, low, high int, names []string, of func(time.Time) int) clause {
	if r.IntN(3) == 0 {
		return everything
	}
	write := func(v int) string {
		if names != nil && r.IntN(2) == 0 {
			return names[v-low]
		}
		return fmt.Sprint(v)
	}
	var texts []string
	var parts []func(int) bool
	for range 1 + r.IntN(3) {
		a := low + r.IntN(high-low+1)
		b := a + r.IntN(high-a+1)
		step := 1 + r.IntN(min(high, 9))
		switch r.IntN(4) {
		case 0:
			texts, parts = append(texts, write(a)), append(parts, func(v int) bool { return v == a })
		case 1:
			texts = append(texts, write(a)+"-"+write(b))
			parts = append(parts, func(v int) bool { return a <= v && v <= b })
		case 2:
			texts = append(texts, fmt.Sprintf("%s-%s/%d", write(a), write(b), step))
			parts = append(parts, func(v int) bool { return a <= v && v <= b && (v-a)%step == 0 })
		default:
			texts = append(texts, fmt.Sprintf("%s/%d", write(a), step))
			parts = append(parts, func(v int) bool { return a <= v && (v-a)%step == 0 })
		}
	}
	return clause{strings.Join(texts, ","), func(t time.Time) bool {
		return slices.ContainsFunc(parts, func(part func(int) bool) bool { return part(of(t)) })
	}, true}
}

// lastOfMonth and weekend follow the documentation, independently of the package.
func lastOfMonth(t time.Time) bool { return t.AddDate(0, 0, 1).Day() == 1 }

func weekend(t time.Time) bool { return t.Weekday() == time.Saturday || t.Weekday() == time.Sunday }

// nearest returns the weekday nearest to a date, within its month.
func nearest(t time.Time) time.Time {
	for _, by := range []int{0, -1, 1, -2, 2} {
		if day := t.AddDate(0, 0, by); day.Month() == t.Month() && !weekend(day) {
			return day
		}
	}
	panic("a month has a weekday within two days")
}

func dates(r *rand.Rand) clause {
	switch r.IntN(6) {
	case 0:
		return clause{"L", lastOfMonth, true}
	case 1:
		return clause{"LW", func(t time.Time) bool {
			first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
			return nearest(first.AddDate(0, 1, -1)).Day() == t.Day()
		}, true}
	case 2:
		n := 1 + r.IntN(31)
		return clause{fmt.Sprintf("%dW", n), func(t time.Time) bool {
			day := time.Date(t.Year(), t.Month(), n, 0, 0, 0, 0, time.UTC)
			return day.Month() == t.Month() && nearest(day).Day() == t.Day()
		}, true}
	default:
		return numeric(r, 1, 31, nil, time.Time.Day)
	}
}

var weekdayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// weekdays generates days of the week. Ranges are walked day by day, so that they may wrap around.
func weekdays(r *rand.Rand, sunday int) clause {
	day := func() time.Weekday { return time.Weekday(r.IntN(7)) }
	write := func(d time.Weekday) string {
		if r.IntN(2) == 0 {
			return weekdayNames[d]
		}
		if d == time.Sunday && sunday == 0 && r.IntN(2) == 0 {
			return "7"
		}
		return fmt.Sprint(int(d) + sunday)
	}
	a, b := day(), day()
	switch r.IntN(6) {
	case 0:
		return clause{write(a) + "L", func(t time.Time) bool {
			return t.Weekday() == a && t.AddDate(0, 0, 7).Month() != t.Month()
		}, true}
	case 1:
		n := 1 + r.IntN(5)
		return clause{fmt.Sprintf("%s#%d", write(a), n), func(t time.Time) bool {
			return t.Weekday() == a && t.AddDate(0, 0, -7*(n-1)).Month() == t.Month() &&
				t.AddDate(0, 0, -7*n).Month() != t.Month()
		}, true}
	case 2:
		return clause{write(a), func(t time.Time) bool { return t.Weekday() == a }, true}
	case 3:
		return clause{
			write(a) + "," + write(b), func(t time.Time) bool { return t.Weekday() == a || t.Weekday() == b }, true,
		}
	default:
		step := 1 + r.IntN(6)
		in := map[time.Weekday]bool{}
		for d, i := a, 0; ; d, i = (d+1)%7, i+1 {
			in[d] = in[d] || i%step == 0
			if d == b {
				break
			}
		}
		text := weekdayNames[a] + "-" + weekdayNames[b]
		switch {
		case a == b:
			text = weekdayNames[a]
		case step > 1:
			text += fmt.Sprintf("/%d", step)
		default:
			text = wrapping(a, b, sunday, text, r)
		}
		return clause{text, func(t time.Time) bool { return in[t.Weekday()] }, true}
	}
}

// wrapping sometimes writes a range of days with numbers.
func wrapping(a, b time.Weekday, sunday int, names string, r *rand.Rand) string {
	switch from, to := int(a)+sunday, int(b)+sunday; {
	case r.IntN(2) == 0:
		return names
	case sunday == 0 && b == time.Sunday:
		return fmt.Sprintf("%d-7", from)
	default:
		return fmt.Sprintf("%d-%d", from, to)
	}
}

// expression generates an expression that new schedules may use, and its matching times.
func (s syntax) expression(r *rand.Rand) (text string, day, minute func(time.Time) bool) {
	mi := numeric(r, 0, 59, nil, time.Time.Minute)
	h := numeric(r, 0, 23, nil, time.Time.Hour)
	mo := numeric(r, 1, 12, []string{
		"JAN", "feb", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "December",
	},
		func(t time.Time) int { return int(t.Month()) })
	date, week := dates(r), weekdays(r, s.sunday)
	if r.IntN(2) == 0 {
		week = everything
	} else if r.IntN(3) > 0 || s.sunday == 1 {
		date = everything
	}
	on := func(t time.Time) bool { return date.matches(t) && week.matches(t) }
	if date.restricted && week.restricted {
		on = func(t time.Time) bool { return date.matches(t) || week.matches(t) }
	}
	year := everything
	fields := []string{mi.text, h.text, date.text, mo.text, week.text}
	if s.sunday == 1 {
		fields[2+2*r.IntN(2)] = "?"
		if date.restricted {
			fields[2], fields[4] = date.text, "?"
		}
		if week.restricted {
			fields[2], fields[4] = "?", week.text
		}
		if fields[2] == "?" && fields[4] == "?" {
			fields[4] = "*"
		}
		year = numeric(r, 1970, 2199, nil, time.Time.Year)
		fields = append(fields, year.text)
	}
	return strings.Join(fields, " "),
		func(t time.Time) bool { return on(t) && mo.matches(t) && year.matches(t) },
		func(t time.Time) bool { return h.matches(t) && mi.matches(t) }
}

// enumerate returns the first n matching minutes after a time, found day by day and minute by minute.
func enumerate(after time.Time, n int, day, minute func(time.Time) bool) (found []time.Time) {
	for d := after.Truncate(24 * time.Hour); d.Year() < after.Year()+6 && len(found) < n; d = d.AddDate(0, 0, 1) {
		if !day(d) {
			continue
		}
		for t := d; t.Day() == d.Day() && len(found) < n; t = t.Add(time.Minute) {
			if t.After(after) && minute(t) {
				found = append(found, t)
			}
		}
	}
	return found
}

func TestNext_generatedExpression_matchesEnumeration(t *testing.T) {
	t.Parallel()
	for _, s := range syntaxes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(28, uint64(s.sunday)))
			tried := 0
			for range *generated {
				text, day, minute := s.expression(r)
				after := time.Date(
					2020+r.IntN(12), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), 0,
					time.UTC,
				)
				want := enumerate(after, 40, day, minute)
				e, err := s.parse(text)
				if err != nil {
					if len(want) > 0 {
						t.Errorf("%q: got error %v", text, err)
					}
					continue
				}
				if err := e.Problem(); err != nil {
					t.Errorf("%q: got error %v", text, err)
				}
				at := after
				for _, next := range want {
					if at = e.Next(at); !at.Equal(next) {
						t.Errorf("%q after %v: got %v, want %v", text, after, at, next)
						break
					}
				}
				tried++
			}
			if tried < *generated*9/10 {
				t.Errorf("got %d of %d expressions compared", tried, *generated)
			}
		})
	}
}

func TestParse_wrongField_isRejected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"22-6 2 * * *":        `minute "22-6": range is reversed; write 22-59,0-6`,
		"0 22-6 * * *":        `hour "22-6": range is reversed; write 22-23,0-6`,
		"0 2 28-3 * *":        `day "28-3": range is reversed; write 28-31,1-3`,
		"0 2 1 DEC-JAN *":     `month "DEC-JAN": range is reversed; write 12,1`,
		"60 2 * * *":          `minute 60: must be 0 to 59`,
		"0 25 * * *":          `hour 25: must be 0 to 23`,
		"0 2 0 * *":           `day 0: must be 1 to 31`,
		"0 2 1 13 *":          `month 13: must be 1 to 12 or JAN to DEC`,
		"0 2 * * 8":           `day of week 8: must be 0 to 7 or SUN to SAT`,
		"0 2 * * FRY":         `day of week "FRY": must be 0 to 7 or SUN to SAT`,
		"0 2 * * L":           `day of week "": must be`,
		"0 2 * * 5#6":         `day of week "5#6": week of the month must be 1 to 5`,
		"*/0 2 * * *":         `minute: step "0": must be 1 to 59`,
		"*/90 2 * * *":        `minute: step "90": must be 1 to 59`,
		"1-2-3 2 * * *":       `minute "2-3": must be 0 to 59`,
		"-1 2 * * *":          `minute "": must be 0 to 59`,
		", 2 * * *":           `minute ",": must be 0 to 59`,
		"0 2 30 2 *":          `matches no time`,
		"0 2 * *":             `has 4 fields, not 5`,
		"@never":              `must be @hourly, @daily`,
		"0 2 L-3 * *":         `day "L": must be 1 to 31`,
		"0 2 31 2,4,6,9,11 *": `matches no time`,
	} {
		if _, err := cron.ParseCrontab(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"0 2 ? * 0 *":         `day of week 0: in cron(…) days are 1, Sunday, to 7, Saturday`,
		"0 2 * * ?":           `cron(…) has 5 fields, not 6: minute, hour, day, month, day of week and year`,
		"0 2 * * ? 2030-2028": `year "2030-2028": range is reversed`,
		"0 2 * * ? 2200":      `year 2200: must be 1970 to 2199`,
		"0 2 * * ? 26":        `year 26: must be 1970 to 2199`,
	} {
		if _, err := cron.ParseEventBridge(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// Earlier releases accepted these expressions. Stored schedules keep running, and new ones are rejected.
func TestProblem_expressionOfAnEarlierRelease_runsAndIsRejectedInNewSchedules(t *testing.T) {
	t.Parallel()
	after := time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC) // a Friday
	for _, tt := range []struct {
		syntax        syntax
		text, problem string
		want          string
	}{
		{syntaxes[1], "0 2 * * * *", "exactly one of day and day of week", "28 29 30"},
		{syntaxes[1], "0 2 1 * MON *", "exactly one of day and day of week", "30 01 07"},
		{syntaxes[1], "0 2 ? * ? *", "exactly one of day and day of week", "28 29 30"},
		{syntaxes[1], "0 2 ? * 3#1,6#3 *", "a list must not contain #", "01 18 05"},
		{syntaxes[1], "0 2 ? ? MON *", `"?" is only valid alone`, "30 07 14"},
		{syntaxes[0], "0 2 */10 * MON", "neither may have a step of *", "30 01 07"},
		{syntaxes[0], "0 2 *,5 * *", "a list must not contain *", "28 29 30"},
		{syntaxes[0], "0 2 5,,6 * *", "the list has an empty item", "05 06 05"},
		{syntaxes[0], "? 2 5 * *", `"?" is only valid alone`, "05 05 05"},
	} {
		e, err := tt.syntax.parse(tt.text)
		if err != nil {
			t.Errorf("%q: got error %v", tt.text, err)
			continue
		}
		if err := e.Problem(); err == nil || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%q: got problem %v, want %s", tt.text, err, tt.problem)
		}
		var got []string
		for at, last := e.Next(after), after; len(got) < 3; at = e.Next(at) {
			if at.YearDay() != last.YearDay() || at.Year() != last.Year() {
				got = append(got, at.Format("02"))
			}
			last = at
		}
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, g, tt.want)
		}
	}
}

func TestNext_lastYear_ends(t *testing.T) {
	t.Parallel()
	e, err := cron.ParseEventBridge("59 23 31 12 ? *")
	if err != nil {
		t.Fatal(err)
	}
	last := time.Date(2199, time.December, 31, 23, 59, 0, 0, time.UTC)
	if got := e.Next(last.Add(-time.Second)); !got.Equal(last) {
		t.Errorf("got %v, want %v", got, last)
	}
	for _, after := range []time.Time{last, last.AddDate(100, 0, 0)} {
		if got := e.Next(after); !got.IsZero() {
			t.Errorf("after %v: got %v, want none", after, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"0 2 * * MON-SUN", "22-6 2 * * *", "0 2 L * ? *", "0 2 ? * 6#3 2027", "0 2 15W * *", "@daily",
		"*/7 1/2 LW feb 5L",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range syntaxes {
			e, err := s.parse(text)
			if err != nil {
				continue
			}
			after := time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)
			if next := e.Next(after); !next.IsZero() && !next.After(after) {
				t.Errorf("%q: got %v, want a time after %v", text, next, after)
			}
		}
	})
}
