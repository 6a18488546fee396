package sweeper

import (
	"slices"
	"testing"
	"time"
)

// A worker is missing when several sweeps have found work items without a report. A report in between resets that time.
func TestMissingWorkers_areReportedAfterThreeMinutes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var m missingWorkers
	counts := map[string]int{"payments": 2, "default": 1}
	if overdue := m.update(counts, now); len(overdue) != 0 {
		t.Errorf("after one sweep: %v", overdue)
	}
	if overdue := m.update(counts, now.Add(missingTimeout)); !slices.Equal(overdue, []string{"default", "payments"}) {
		t.Errorf("after %v: %v", missingTimeout, overdue)
	}
	m.update(map[string]int{"payments": 2}, now.Add(missingTimeout))
	if overdue := m.update(counts, now.Add(missingTimeout+time.Second)); !slices.Equal(overdue, []string{"payments"}) {
		t.Errorf("after a report for default: %v", overdue)
	}
}
