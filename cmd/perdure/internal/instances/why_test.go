package instances

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
)

// why shows known times and calculates no duration from an unknown one.
func TestWhy_unknownTimes_printsNoDuration(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)
	for want, x := range map[string]client.Cancellation{
		"ABANDONED, seen —":                  {DecidedAt: at, End: client.OutcomeAbandoned},
		"stopped, seen +0ms":                 {DecidedAt: at, SeenAt: at, End: client.OutcomeStopped},
		"timed out without a report, seen —": {EndedAt: at, End: client.OutcomeTimedOut},
		"completed anyway after 1.00s, seen —": {
			SeenAt: at, EndedAt: at.Add(time.Second), End: client.OutcomeCompleted,
		},
		"worker lost, seen —": {End: client.OutcomeWorkerLost},
	} {
		if got := outcomeText(&x) + ", seen " + observedText(&x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var page client.CancellationPage
	page.Items = []client.Cancellation{{Target: client.TargetTimer, DecidedAt: at}}
	if got := CancellationsText(client.Status{}, page); strings.Contains(got, "0001") || strings.Contains(got, "+") {
		t.Errorf("an execution without a start time: %s", got)
	}
}
