// Package scheduling interprets the status of schedules.
package scheduling

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// ReadStatus returns the status of the schedule that an instance runs, and the runtime status to show. Before the first
// turn of the instance, only the ID of the schedule is known.
func ReadStatus(in *provider.Instance) (s schedule.Status, runtime provider.RuntimeStatus, err error) {
	runtime = in.Status
	if in.Name != schedule.OrchestrationName {
		return s, runtime, fmt.Errorf("instance %q runs orchestration %q and is not a schedule: %w",
			in.InstanceID, in.Name, provider.ErrNotFound)
	}
	s.Schedule.ID, _ = schedule.ParseInstanceID(in.InstanceID)
	if len(in.CustomStatus) == 0 {
		return s, runtime, nil
	}
	if err := json.Unmarshal(in.CustomStatus, &s); err != nil {
		return s, runtime, fmt.Errorf("custom status of instance %q: %w", in.InstanceID, err)
	}
	if s.Paused != nil && in.Status == provider.StatusRunning {
		runtime = provider.StatusPaused
	}
	if in.Status == provider.StatusPaused || in.Status.Terminal() {
		s.NextDue = time.Time{}
	}
	return s, runtime, nil
}

// EndsSoon reports whether a schedule ends soon unless a change prevents it. A paused instance applies all changes when
// it is resumed.
func EndsSoon(s *schedule.Status, runtime provider.RuntimeStatus) bool {
	started := s.Schedule.Expression != ""
	return started && runtime == provider.StatusRunning && s.CurrentRun == nil && (s.Deleting || s.NextDue.IsZero())
}

// HasSettings reports whether a schedule has these settings, except for the input. The status does not contain the
// input.
func HasSettings(s *schedule.Status, settings *schedule.Schedule) bool {
	expected := *settings
	expected.Input = nil
	want, _ := json.Marshal(&expected)  //nolint:errchkjson // texts and times that were validated
	got, _ := json.Marshal(&s.Schedule) //nolint:errchkjson // as they were read
	return !s.Deleting && bytes.Equal(want, got)
}

// CheckBackfill returns an error if a schedule does not accept a backfill.
func CheckBackfill(s schedule.Status, runtime provider.RuntimeStatus, w schedule.BackfillWindow, now time.Time) error {
	switch {
	case runtime.Terminal() || s.Deleting:
		return fmt.Errorf("schedule %q has ended or was deleted: %w", s.Schedule.ID, provider.ErrEnded)
	case len(s.Backfills) >= schedule.MaxPendingBackfills:
		return &provider.FieldError{
			Field: "from",
			Problem: fmt.Sprintf("exceeds the limit of %d waiting backfills; try again later",
				schedule.MaxPendingBackfills),
		}
	case s.Schedule.Expression == "": // the settings are unknown before the first turn
		s.Schedule.Expression = "@yearly"
	}
	return s.Schedule.ValidateWindow(w, now)
}

// maxKeyLead is how far the time of a key may be ahead of the clock, because clocks differ.
const maxKeyLead = 5 * time.Minute

const fieldKey = "key"

// CheckKey checks the key of a manual run. Its time is the time of the run, so that a repeated call names the same run.
func CheckKey(key string, now time.Time) error {
	if key == "" {
		return nil
	}
	u, err := ulid.ParseStrict(key)
	switch {
	case err != nil:
		return &provider.FieldError{Field: fieldKey, Problem: "must be a ULID, whose time is the time of the run"}
	case ulid.Time(u.Time()).After(now.Add(maxKeyLead)):
		return &provider.FieldError{
			Field: fieldKey, Problem: fmt.Sprintf("has a time more than %v in the future", maxKeyLead),
		}
	default:
		return nil
	}
}
