package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// ErrNoReconciling means that the client's hub cannot be reconciled (provider.Reconciling).
var ErrNoReconciling = errors.New("this hub cannot be reconciled")

// Reconciliation says how Reconcile works.
type Reconciliation struct {
	// Back is how far back detached starts count that may not have arrived: 14 days where it is 0, which is how long a queue
	// keeps a message, and 28 at most. It is reckoned from now: after a restore it is these 14 days, and the age of the second
	// that was restored. What is older is left out, since its instance may have been purged and would run again. Of an instance that is not
	// over all detached starts of the last 28 days are sent, since its wake leads to them anyway.
	Back time.Duration
	// AtOnce is how many instances are dealt with side by side: 32 where it is 0, at most 256.
	AtOnce int
	// Cursor is where to go on: the Cursor of a progress that was reported.
	Cursor string
	// Instances are these alone, such as those that another call has Left. Not with Cursor.
	Instances []string
	// Progress, if set, is called after each page of instances, from one goroutine.
	Progress func(Reconciled)
	// Waiting, if set, is called about once a minute while no call succeeds, one call after the other.
	Waiting func(Waiting)
}

// Reconciled is how far a reconciliation has come.
type Reconciled struct {
	// Instances is how many were looked at. Of these, Living are not over; Over are over, and Old for longer than Back; Deleted
	// were being deleted, and are; Gone are not there any more; Failed have failed.
	Instances int64 `json:"instances"`
	Living    int64 `json:"living"`
	Over      int64 `json:"over"`
	Old       int64 `json:"old"`
	Deleted   int64 `json:"deleted"`
	Gone      int64 `json:"gone"`
	Failed    int64 `json:"failed"`
	// SetAside is how many have failed for now: they are tried again. At most 1,000 are, at a time.
	SetAside int64 `json:"setAside"`
	// Sent counts messages, work items and timers. Refused counts outputs that no queue of the hub takes; they fail.
	Sent    int64 `json:"sent"`
	Refused int64 `json:"refused"`
	// LeftOut counts detached starts, and events for other instances, that were left out: from before Back, and, of instances that are not over, from more than 28 days ago. Cut
	// counts the instances of which past executions were left out (provider.MostPast).
	LeftOut int64 `json:"leftOut"`
	Cut     int64 `json:"cut"`
	// Lost counts children that are not there, and whose parents were told so (history.TypeOutcomeLost): their starts are of more than 28 days
	// ago, and nothing is left that tells whether they have run.
	Lost int64 `json:"lost"`
	// Errors are the first errors of those that failed.
	Errors []string `json:"errors,omitempty"`
	// Left are the instances that have failed, and are not done when the call ends: another call may do them. Of Instances it has
	// those that were not tried, too. An instance whose history is corrupt is in Errors alone.
	Left []string `json:"left,omitempty"`
	// Cursor is where another call goes on. It does what is set aside or was refused as well: the cursor names up to 20 such instances, and
	// leads back to the first page that has others. It is empty when the call has come to its end, and while that is the beginning.
	Cursor string `json:"cursor,omitempty"`
}

const (
	reconcileBack   = 14 * 24 * time.Hour
	reconcileAtOnce = 32
	mostAtOnce      = 256
	reconcilePage   = 500
	reconcileErrors = 20
	// reconcileTries is how often an instance is tried before it is set aside, with rests of a second and of two.
	reconcileTries = 3
	// mostAside bounds those that are set aside at a time. A page is begun when all of it has room there.
	mostAside = 1000
	// tryTime is how long a try of an instance, or a look for a page of them, may take at first, and longestTry at the most: each later try of
	// an instance has twice as long. A call that hangs holds its place no longer.
	tryTime    = 2 * time.Minute
	longestTry = 16 * time.Minute
	// betweenAside is after how long those that are set aside are tried again while others are worked on.
	betweenAside = time.Minute
	// runFormat has times sort as texts.
	runFormat = "2006-01-02T15:04:05.000000000Z07:00"
)

// Reconcile goes through all instances of a hub, and sends again what they wait for and have caused, whatever its queues
// and schedules held: for a table that was restored to an earlier time, and for queues that are new or have lost messages.
// What is settled in history does not run again; what is not may run twice. It is harmless while the hub is at work, when
// it is repeated, and when it dies half way: it goes on from the Cursor, or begins anew. After queues that stay have lost messages
// wait for provider.QuietTime: SQS takes what is sent again within five minutes for what it has lost.
//
// An instance whose calls are throttled, or take longer than two minutes, is set aside, and tried again later and at the end. Calls are waited
// for until none has succeeded for an hour; each that does gives the others another one. What does not succeed by then is counted as
// failed and is Left; so is what is refused for good, such as when the caller's session has expired, which is not tried again. Reconcile stops
// where more than 500 instances fail at a time.
//
// What was raised or started and is not in the table is not known, and is not brought back. Bad input is a
// *provider.FieldError.
func (c *Client) Reconcile(ctx context.Context, r Reconciliation) (Reconciled, error) {
	hub, ok := offered.By[provider.Reconciling](c.hub)
	if !ok {
		return Reconciled{}, fmt.Errorf("client: reconcile: %w", ErrNoReconciling)
	}
	from, err := r.check()
	if err != nil {
		return Reconciled{}, fmt.Errorf("client: reconcile: %w", err)
	}
	w := &reconciler{
		client: c, hub: hub, atOnce: r.AtOnce, progress: r.Progress, patience: c.patient(r.Waiting),
		how: provider.Reconcile{Since: c.now().Add(-r.Back), Run: c.now().UTC().Format(runFormat)},
	}

	if len(r.Instances) > 0 {
		err = w.these(ctx, r.Instances)
	} else {
		err = w.allFrom(ctx, from)
	}
	if err == nil {
		err = w.insist(ctx, 0)
	}
	so, err := w.conclude(err)
	if err != nil {
		return so, fmt.Errorf("client: reconcile: %w", err)
	}
	return so, nil
}

// check sets what is not given, and returns where to begin.
func (r *Reconciliation) check() (from place, err error) {
	if r.Back == 0 {
		r.Back = reconcileBack
	}
	if r.AtOnce == 0 {
		r.AtOnce = reconcileAtOnce
	}
	switch {
	case r.Back < 0 || r.Back > provider.MostBack:
		return from, &provider.FieldError{Field: "back", Problem: fmt.Sprintf("must be up to %d days: what was started before may have been purged since, and would run again", provider.MostBack/(24*time.Hour))}
	case r.AtOnce < 1 || r.AtOnce > mostAtOnce:
		return from, &provider.FieldError{Field: "atOnce", Problem: fmt.Sprintf("must be 1 to %d", mostAtOnce)}
	}
	if len(r.Instances) > 0 && r.Cursor != "" {
		return from, &provider.FieldError{Field: fieldCursor, Problem: "is of all instances, and these are some"}
	}
	if err := checkCursor(r.Cursor); err != nil {
		return from, err
	}
	return parsePlace(r.Cursor)
}
