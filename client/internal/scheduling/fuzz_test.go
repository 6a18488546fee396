package scheduling

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// FuzzReadStatus checks that the custom status of a schedule is rejected with an error that names the instance, or is a
// status that the checks of calls accept.
func FuzzReadStatus(f *testing.F) {
	for _, s := range []string{
		`{"schedule":{"id":"nightly","when":"@daily"},"nextDue":"2026-01-02T00:00:00Z","paused":{"by":"me"}}`, `{}`, `[]`,
		`{"schedule":{"input":null}}`, ``, `null`,
	} {
		f.Add([]byte(s), "01KA0000000000000000000000")
	}
	f.Add([]byte(nil), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	f.Add([]byte(nil), "8ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, custom []byte, key string) {
		in := provider.Instance{
			InstanceID: schedule.InstanceID("nightly"), Name: schedule.OrchestrationName, CustomStatus: custom,
			Status: provider.StatusRunning,
		}
		s, runtime, err := ReadStatus(&in)
		if err == nil {
			if runtime != provider.StatusRunning && (s.Paused == nil || runtime != provider.StatusPaused) {
				t.Errorf("%q: status %s of %+v", custom, runtime, s)
			}
			EndsSoon(&s, runtime) // must not panic
			HasSettings(&s, &s.Schedule)
			_ = CheckBackfill(s, runtime, schedule.BackfillWindow{From: now.Add(-time.Hour), To: now}, now)
		}
		err = CheckKey(key, now)
		if e, ok := errors.AsType[*provider.FieldError](err); err != nil && (!ok || e.Field != fieldKey) ||
			err == nil && key != "" && len(key) != 26 {
			t.Errorf("key %q: %v", key, err)
		}
	})
}
