package schedule_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/schedule"
)

func TestDueTime_instanceIDs(t *testing.T) {
	t.Parallel()
	const run = "nightly@2000-01-01T02:00:00Z"
	for id, want := range map[string]bool{
		run:                       true,
		run + ".restart-0123abcd": true,
		"a@b@2000-01-01T02:00:00Z.restart-0123abcd":     true,
		"a.restart-0123abcd@2000-01-01T02:00:00Z":       true,
		run + ".restart-0123abcd.restart-0123abcd":      false,
		run + ".restart-0123ABCD":                       false,
		run + ".restart-0123abcx":                       false,
		run + ".restart-0123abc":                        false,
		run + ".restart-0123abcde":                      false,
		run + ".restart":                                false,
		run + "restart-0123abcd":                        false,
		run + "/child":                                  false,
		"nightly.restart-0123abcd":                      false,
		"nightly@.restart-0123abcd":                     false,
		"2000-01-01T02:00:00Z.restart-0123abcd":         false,
		"nightly@2000-01-01.restart-0123abcd":           false,
		"nightly@2000-01-01T02:00:00Z@restart-0123abcd": false,
	} {
		due, ok := schedule.DueTime(id)
		if ok != want || ok && !due.Equal(time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: got %v, %t, want %t", id, due, ok, want)
		}
	}
}
