package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Pending is what an execution of an instance waits for. Its JSON is that of the HTTP API.
type Pending struct {
	// ReadAt is when it was read, by the client's clock: ages are reckoned from there.
	ReadAt time.Time `json:"readAt"`
	// Total is how much there is; Items are at most as many as were asked for. Those that have failed before come first, and else
	// the oldest.
	Total int           `json:"total"`
	Items []PendingItem `json:"items"`
}

// PendingItem is something that an execution waits for.
type PendingItem struct {
	What PendingKind `json:"what"`
	// ID is that of the event that scheduled it: of the attempt before, of a sub-orchestration that is to be tried again.
	ID int64 `json:"id"`
	// Name is that of the activity, of the child's orchestration, or of the external event.
	Name string `json:"name,omitempty"`
	// ChildID is the instance id of a sub-orchestration: of its last attempt.
	ChildID string `json:"childId,omitempty"`
	// Since is when it was scheduled: of a sub-orchestration, its last attempt.
	Since time.Time `json:"since"`

	// Attempt is the one that an activity or sub-orchestration is at: it waits for its time, lies in its queue or runs. 0: not known.
	Attempt int `json:"attempt,omitempty"`
	// LastError is what the attempt before failed with, cut to a few KiB, at FailedAt. NextTryAt is when the attempt is due, or was.
	LastError *history.Failure `json:"lastError,omitempty"`
	FailedAt  time.Time        `json:"failedAt,omitzero"`
	NextTryAt time.Time        `json:"nextTryAt,omitzero"`
	// DueAt is when a timer fires.
	DueAt time.Time `json:"dueAt,omitzero"`

	// Queue is the work queue of an activity.
	Queue string `json:"queue,omitempty"`
	// LastHeartbeatAt is when an activity last told details of its progress: heartbeats without are not recorded.
	LastHeartbeatAt time.Time `json:"lastHeartbeatAt,omitzero"`
	// UnknownAt is when a worker last received the activity whose build, UnknownBuild, does not have it. Zero when no worker has said
	// so, or one has begun it since. Of an activity without this, a heartbeat and a failure nobody knows whether it has begun.
	UnknownAt    time.Time `json:"unknownAt,omitzero"`
	UnknownBuild string    `json:"unknownBuild,omitempty"`

	// CancelledAt is when an activity or sub-orchestration was cancelled whose end is waited for (perdure.WaitForCancellation), and that has
	// not ended yet; CancelReason is why. Zero of all others.
	CancelledAt  time.Time `json:"cancelledAt,omitzero"`
	CancelReason string    `json:"cancelReason,omitempty"`

	// NoWorker: the activity has been due for a while, and nobody is at work on it. No worker of its queue has been heard of for ten minutes, in which one that is given
	// work, or is at work, tells so twice: there is none, its function dies before it begins, or may not read the queue. WorkerSeenAt is when one was
	// heard of last; zero: never.
	NoWorker     bool      `json:"noWorker,omitempty"`
	WorkerSeenAt time.Time `json:"workerSeenAt,omitzero"`
}

// PendingKind is what an execution waits for.
type PendingKind string

// What can be pending.
const (
	PendingActivity         PendingKind = "activity"
	PendingTimer            PendingKind = "timer"
	PendingSubOrchestration PendingKind = "sub_orchestration"
	PendingExternalEvent    PendingKind = "external_event"
)

// Pending reads what an execution of an instance waits for, the current one when executionID is empty: of limit items at most (0 is
// 100, at most MaxPage), strongly consistent. What has arrived for a blocked instance is not pending any more. What is over waits
// for nothing.
//
// It reads the whole history of the execution, and memory grows with what is pending alone; ctx limits the time. A history of 100 MB takes
// some 115 queries, one after the other, of 256 read units each: seconds, and about a third of a cent; data that history refers to is read
// besides. Status is for who asks often. History does not tell when a wait for an external event is given up, as where it loses a race: such a one is listed until an event of
// its name comes. ErrNotFound is as of Cancellations; ErrCorrupt (of package provider) where the history cannot be read.
func (c *Client) Pending(ctx context.Context, instanceID, executionID string, limit int) (Pending, error) {
	p := Pending{ReadAt: c.now().UTC(), Items: []PendingItem{}}
	err := checkLimit(limit)
	if err == nil {
		err = c.pending(ctx, &p, instanceID, executionID, cmp.Or(limit, defaultPage))
	}
	if err != nil {
		return p, fmt.Errorf("client: pending: %w", err)
	}
	return p, nil
}

func (c *Client) pending(ctx context.Context, p *Pending, instanceID, executionID string, limit int) error {
	executionID, err := c.executionOf(ctx, instanceID, historyOptions{executionID: executionID})
	if err != nil {
		return err
	}
	l := newPendingLog()
	for e, err := range c.provider.ReadHistory(ctx, instanceID, executionID, 0) {
		if err != nil {
			return err
		}
		l.add(&e)
	}
	l.takeParked()
	p.Total = len(l.open)
	retries, err := c.retriesOf(ctx, executionID, l, limit)
	if err != nil {
		return err
	}
	p.Items = l.first(limit, retries)
	if err := c.witnesses(ctx, executionID, p.Items); err != nil {
		return err
	}
	return c.missWorkers(ctx, p)
}

// startsWithin is how long a worker may take to be started for an activity that is due, before it is missed.
const startsWithin = time.Minute

// missWorkers marks the activities that nobody can be at work on.
func (c *Client) missWorkers(ctx context.Context, p *Pending) error {
	var waiting []*PendingItem
	for i := range p.Items {
		x := &p.Items[i]
		due := x.Since
		if x.NextTryAt.After(due) {
			due = x.NextTryAt
		}
		if x.LastHeartbeatAt.After(due) {
			due = x.LastHeartbeatAt // whoever told it was there
		}
		if x.What == PendingActivity && x.Queue != "" && x.UnknownAt.IsZero() && p.ReadAt.Sub(due) > startsWithin {
			waiting = append(waiting, x)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	reports, err := c.provider.ReadWorkers(ctx)
	if err != nil {
		return err
	}
	for _, x := range waiting {
		if r := reports[x.Queue]; r.Missing(p.ReadAt) {
			x.NoWorker, x.WorkerSeenAt = true, r.SeenAt
		}
	}
	return nil
}

// mostRetries bounds how many items of retries are read. Those of activities that are over are among them.
const mostRetries = 20_000

// retries are the open activities that have failed before: as many as are asked for, from the first id on.
type retries struct {
	of map[int64]provider.ActivityRetry
	// known: of an activity with an id up to this one that is not among them, it is known that it is in its first attempt.
	known int64
}

func (c *Client) retriesOf(ctx context.Context, executionID string, l *pendingLog, limit int) (retries, error) {
	found := retries{of: map[int64]provider.ActivityRetry{}, known: l.last}
	if l.activities == 0 {
		return found, nil
	}
	read := 0
	for r, err := range c.provider.ReadRetries(ctx, executionID) {
		if err != nil {
			return found, err
		}
		if read++; read > mostRetries || len(found.of) == limit {
			found.known = r.ActivityID - 1
			break
		}
		if _, open := l.open[r.ActivityID]; open {
			found.of[r.ActivityID] = r
		}
	}
	return found, nil
}

// readsAtOnce is how many items are read side by side.
const readsAtOnce = 16

// witnesses adds what workers have left of the activities among items.
func (c *Client) witnesses(ctx context.Context, executionID string, items []PendingItem) error {
	var activities []*PendingItem
	for i := range items {
		if items[i].What == PendingActivity {
			activities = append(activities, &items[i])
		}
	}
	return sideBySide(activities, func(p *PendingItem) error {
		r, err := c.provider.ReadActivityRecord(ctx, executionID, p.ID)
		if err == nil {
			p.witness(&r)
		}
		return err
	})
}

// sideBySide reads something about each item, a few at once. After an error nothing more is begun: whoever is throttled is not to be asked a
// thousand times.
func sideBySide[T any](items []T, read func(T) error) error {
	var (
		reads  sync.WaitGroup
		failed atomic.Bool
	)
	slots, errs := make(chan struct{}, readsAtOnce), make([]error, len(items))
	for i := range items {
		slots <- struct{}{}
		if failed.Load() {
			break
		}
		reads.Go(func() {
			defer func() { <-slots }()
			if errs[i] = read(items[i]); errs[i] != nil {
				failed.Store(true)
			}
		})
	}
	reads.Wait()
	return errors.Join(errs...)
}

func (p *PendingItem) witness(r *provider.ActivityRecord) {
	p.LastHeartbeatAt = r.BeatenAt
	if r.Unknown(p.FailedAt) {
		p.UnknownAt, p.UnknownBuild = r.UnknownAt, r.UnknownBuild
	}
}

// Limits of a last error: a thousand of them fit an answer.
const (
	lastErrorBytes  = 1 << 10
	lastErrorCauses = 1
)

// cut leaves of a failure what people read first.
func cut(f *history.Failure, causes int) *history.Failure {
	if f == nil {
		return nil
	}
	c := &history.Failure{Type: f.Type, Message: f.Message, Reason: f.Reason, NonRetryable: f.NonRetryable}
	if len(c.Message) > lastErrorBytes {
		c.Message = strings.ToValidUTF8(c.Message[:lastErrorBytes], "") + "…"
	}
	if causes > 0 {
		c.Cause = cut(f.Cause, causes-1)
	}
	return c
}

// first are the items to show.
func (l *pendingLog) first(limit int, failed retries) []PendingItem {
	ids := make([]int64, 0, len(l.open))
	for id := range l.open {
		ids = append(ids, id)
	}
	hasFailed := func(id int64) bool {
		_, retried := failed.of[id]
		return retried || l.open[id].child != nil && l.open[id].child.err != nil
	}
	slices.SortFunc(ids, func(a, b int64) int {
		if x, y := hasFailed(a), hasFailed(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	items := make([]PendingItem, 0, min(limit, len(ids)))
	for _, id := range ids[:cap(items)] {
		items = append(items, l.open[id].item(id, failed))
	}
	return items
}
