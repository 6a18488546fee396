package provider

import (
	"context"
	"iter"
	"time"
)

// Schedules is for operators: it lists the schedules of a hub. Schedules are instances, and the list finds them without
// an index of all instances. It is optional (NoSchedules), because orchestrations can run without schedules.
type Schedules interface {
	// PutScheduleEntry adds a schedule to the list, or updates NotedAt.
	PutScheduleEntry(ctx context.Context, s ScheduleEntry) error
	// DeleteScheduleEntry removes a schedule that was added at s.NotedAt. It does nothing if the schedule was added
	// again since, or is not in the list.
	DeleteScheduleEntry(ctx context.Context, s ScheduleEntry) error
	// ListSchedules yields the schedules with IDs after the given one, sorted by ID, with strong consistency. An empty
	// ID selects all. It reads pages of a bounded size and ends with the first error.
	ListSchedules(ctx context.Context, after string) iter.Seq2[ScheduleEntry, error]
}

// ScheduleEntry is an entry of the list of schedules.
type ScheduleEntry struct {
	ID string
	// NotedAt is the time when the schedule was added, with a resolution of a millisecond.
	NotedAt time.Time
}
