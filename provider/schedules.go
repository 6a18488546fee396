package provider

import (
	"context"
	"iter"
	"time"
)

// Schedules stores the list of a hub's schedules for operators. Each schedule is an instance, and the list makes it
// possible to find schedules without an index of all instances. Schedules is optional (NoSchedules), because
// orchestrations can run without schedules.
type Schedules interface {
	// PutScheduleEntry adds a schedule to the list, or updates NotedAt.
	PutScheduleEntry(ctx context.Context, s ScheduleEntry) error
	// DeleteScheduleEntry removes a schedule that was added at s.NotedAt. It does nothing if the schedule was added
	// again after that time, or is not in the list.
	DeleteScheduleEntry(ctx context.Context, s ScheduleEntry) error
	// ListSchedules yields the schedules with IDs after the given one, sorted by ID, with strong consistency. An empty
	// ID selects all schedules. ListSchedules reads pages of a bounded size, and its iterator ends with the first
	// error.
	ListSchedules(ctx context.Context, after string) iter.Seq2[ScheduleEntry, error]
}

// ScheduleEntry is an entry of the list of schedules.
type ScheduleEntry struct {
	ID string
	// NotedAt is the time at which the schedule was added, with a resolution of a millisecond.
	NotedAt time.Time
}
