package provider

import (
	"context"
	"iter"
	"time"
)

// Schedules lists the schedules of a hub, which are instances like others, so that they are found among millions.
type Schedules interface {
	// NoteSchedule writes a schedule down, also where it is already.
	NoteSchedule(ctx context.Context, s NotedSchedule) error
	// ForgetSchedule deletes what was written down at that very time. It does nothing where the schedule was noted again since, or is not there.
	ForgetSchedule(ctx context.Context, s NotedSchedule) error
	// ListSchedules yields those whose ids come after one, all where that is empty, by their ids, strongly consistent. It reads pages of a bounded
	// size, and ends with the first error.
	ListSchedules(ctx context.Context, after string) iter.Seq2[NotedSchedule, error]
}

// NotedSchedule is a schedule that is written down.
type NotedSchedule struct {
	ID string
	// NotedAt is when it was, to the millisecond.
	NotedAt time.Time
}
