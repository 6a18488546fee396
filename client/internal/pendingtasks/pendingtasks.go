// Package pendingtasks finds the tasks and messages that an execution is waiting for.
package pendingtasks

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/perdure/perdure/client/internal/parallel"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Kind is the kind of an item.
type Kind string

// Kinds of items.
const (
	Activity         Kind = "activity"
	Timer            Kind = "timer"
	SubOrchestration Kind = "sub_orchestration"
	ExternalEvent    Kind = "external_event"
	SentEvent        Kind = "sent_event"
	SentUpdate       Kind = "sent_update"
	ReceivedUpdate   Kind = "update"
)

// Item is a pending item. Package client converts it to a PendingItem, which has the same fields.
type Item struct {
	Kind        Kind
	ID          int64
	Name        string
	UpdateID    string
	InstanceID  string
	ScheduledAt time.Time

	Attempt       int
	MaxAttempts   int
	LastError     *history.Failure
	FailedAt      time.Time
	NextAttemptAt time.Time
	DueAt         time.Time

	Queue               string
	LastHeartbeatAt     time.Time
	UnregisteredAt      time.Time
	UnregisteredBuildID string

	CancelledAt  time.Time
	CancelReason string

	ResultPendingSince time.Time
	NextTimeoutCheckAt time.Time

	NoWorker     bool
	WorkerSeenAt time.Time
}

// Blocked describes a blocked execution, like client.BlockedState.
type Blocked struct {
	Since                    time.Time
	BuildID, LastTurnBuildID string
	ParkedInputs             int
}

// List is the result of Read. Total counts all pending items.
type List struct {
	Total   int
	Items   []Item
	Blocked *Blocked
}

// Backend is the part of a provider that Read uses.
type Backend interface {
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error]
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (provider.ActivityRecord, error)
	ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error)
}

// Read returns up to limit pending items of an execution. Items that failed before come first. The order is otherwise
// by age, oldest first.
func Read(
	ctx context.Context, hub Backend, of history.ExecutionRef, limit int, now time.Time,
) (list List, err error) {
	l := newLog()
	for e, err := range hub.ReadHistory(ctx, of.InstanceID, of.ExecutionID, 0) {
		if err != nil {
			return list, err
		}
		l.add(&e)
	}

	ids := l.pending()
	list.Total = len(ids)
	list.Blocked = l.blocked()
	failed, err := readRetries(ctx, hub, of.ExecutionID, l, limit)
	if err != nil {
		return list, err
	}

	list.Items = firstItems(l, ids, limit, failed)
	if err := addRecords(ctx, hub, of.ExecutionID, list.Items); err != nil {
		return list, err
	}
	return list, markWithoutWorker(ctx, hub, list.Items, now)
}

// firstItems returns the first items in the order of Read.
func firstItems(l *log, ids []int64, limit int, failed retries) []Item {
	slices.SortFunc(ids, func(a, b int64) int {
		if x, y := l.hasFailed(a, failed), l.hasFailed(b, failed); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})

	items := make([]Item, 0, min(limit, len(ids)))
	for _, id := range ids[:cap(items)] {
		items = append(items, l.item(id, failed))
	}
	return items
}

// addRecords adds the records of workers to the activities.
func addRecords(ctx context.Context, hub Backend, executionID string, items []Item) error {
	var activities []*Item
	for i := range items {
		if items[i].Kind == Activity {
			activities = append(activities, &items[i])
		}
	}
	return parallel.Each(activities, func(x *Item) error {
		r, err := hub.ReadActivityRecord(ctx, executionID, x.ID)
		if err == nil {
			x.addRecord(&r)
		}
		return err
	})
}

func (x *Item) addRecord(r *provider.ActivityRecord) {
	x.LastHeartbeatAt = r.LastHeartbeatAt
	if r.Unknown(x.FailedAt) {
		x.UnregisteredAt = r.UnknownAt
		x.UnregisteredBuildID = r.UnknownBuild
	}
}

// startTimeout is the time in which a worker normally starts an activity that is due. After this time, the worker may
// be missing.
const startTimeout = time.Minute

// markWithoutWorker marks the activities whose queue has no active worker.
func markWithoutWorker(ctx context.Context, hub Backend, items []Item, now time.Time) error {
	var waiting []*Item
	for i := range items {
		if items[i].needsWorker(now) {
			waiting = append(waiting, &items[i])
		}
	}
	if len(waiting) == 0 {
		return nil
	}

	reports, err := hub.ReadWorkers(ctx)
	if err != nil {
		return err
	}
	for _, x := range waiting {
		if r := reports[x.Queue]; r.Missing(now) {
			x.NoWorker = true
			x.WorkerSeenAt = r.SeenAt
		}
	}
	return nil
}

// needsWorker reports whether a worker should have started the item by now.
func (x *Item) needsWorker(now time.Time) bool {
	due := x.ScheduledAt
	if x.NextAttemptAt.After(due) {
		due = x.NextAttemptAt
	}
	if x.LastHeartbeatAt.After(due) {
		due = x.LastHeartbeatAt // the worker was active at that time
	}
	return x.Kind == Activity && x.Queue != "" && x.ResultPendingSince.IsZero() && x.UnregisteredAt.IsZero() &&
		now.Sub(due) > startTimeout
}
