package lambdahandler

import (
	"strings"
	"testing"
)

func TestEnvironment_logErrorTexts_mustBeTrueOrFalse(t *testing.T) {
	t.Parallel()
	const name = "PERDURE_LOG_ERROR_TEXTS"
	for value, want := range map[string]bool{"": true, "true": true, "false": false} {
		e := environmentWith(map[string]string{name: value})
		if got, err := e.logsErrorTexts(), e.err(); got != want || err != nil {
			t.Errorf("%q: got %v, error %v", value, got, err)
		}
	}
	e := environmentWith(map[string]string{name: "no"})
	if e.logsErrorTexts() || e.err() == nil || !strings.Contains(e.err().Error(), name) {
		t.Errorf("want %s in error %v", name, e.err())
	}
}

func TestEnvironment_maxCrashes_mustBeOneToNinety(t *testing.T) {
	t.Parallel()
	const name = "PERDURE_MAX_ATTEMPTS"
	for value, want := range map[string]int{"": 10, "1": 1, "90": 90, "0": 0, "91": 0, "-1": 0, "ten": 0, "1.5": 0} {
		e := environmentWith(map[string]string{name: value})
		got, err := e.maxCrashes(), e.err()
		if want == 0 {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%q: want %s in error %v", value, name, err)
			}
		} else if got != want || err != nil {
			t.Errorf("%q: got %d, error %v, want %d", value, got, err, want)
		}
	}
}
