package lambdahandler

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch"
)

func TestEnvironment_inlineTimeout_isDurationUpToFiveMinutes(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]time.Duration{
		"": 2 * time.Second, "500ms": 500 * time.Millisecond, "10s": 10 * time.Second, "5m": 5 * time.Minute, "0": -1,
		"0s": -1,
	} {
		e := environmentWith(map[string]string{"PERDURE_INLINE_TIMEOUT": set})
		if got, err := e.inlineTimeout(), e.err(); got != want || err != nil {
			t.Errorf("%q: got %v, error %v; want %v", set, got, err, want)
		}
	}
	for _, set := range []string{"-1s", "5m1s", "2", "soon"} {
		e := environmentWith(map[string]string{"PERDURE_INLINE_TIMEOUT": set})
		if e.inlineTimeout(); e.err() == nil || !strings.Contains(e.err().Error(), "PERDURE_INLINE_TIMEOUT") {
			t.Errorf("%q: got error %v", set, e.err())
		}
	}
}

func TestEnvironment_activityTimes_areValidated(t *testing.T) {
	t.Parallel()
	const lock, buffer, poll, grace = "PERDURE_LOCK_TIMEOUT", "PERDURE_LOCK_RENEWAL_BUFFER",
		"PERDURE_CANCEL_POLL_INTERVAL", "PERDURE_CANCELLATION_GRACE_PERIOD"
	type times struct{ lock, buffer, poll, grace time.Duration }
	const s = time.Second
	for name, c := range map[string]struct {
		set   map[string]string
		want  times
		wrong string
	}{
		"nothing": {want: times{30 * s, 5 * s, s / 4, 10 * s}},
		"all": {
			set: map[string]string{
				lock: "60s", buffer: "10s", poll: "100ms", grace: "3s",
			},
			want: times{60 * s, 10 * s, 100 * time.Millisecond, 3 * s},
		},
		"a short lock alone":           {set: map[string]string{lock: "3s"}, want: times{3 * s, s, s / 4, 10 * s}},
		"no grace":                     {set: map[string]string{grace: "0s"}, want: times{30 * s, 5 * s, s / 4, -1}},
		"no lock":                      {set: map[string]string{lock: "0s"}, wrong: lock},
		"no interval":                  {set: map[string]string{poll: "0s"}, wrong: poll},
		"a negative grace":             {set: map[string]string{grace: "-1s"}, wrong: grace},
		"no duration":                  {set: map[string]string{lock: "30"}, wrong: lock},
		"a buffer as long as the lock": {set: map[string]string{lock: "5s", buffer: "5s"}, wrong: buffer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := environmentWith(c.set)
			var o dispatch.WorkerOptions
			e.activities(&o)
			err := e.err()
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("want %s in error %v", c.wrong, err)
				}
				return
			}
			if got := (times{
				o.LockTimeout, o.LockRenewalBuffer, o.CancelPollInterval, o.CancellationGracePeriod,
			}); got != c.want || err != nil {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}
