package timers

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
)

// Lambda hides a record from others for the timeout of its function at least, which for the renewer is a minute. A
// renewer that is killed would hold its timers as long, and they are due to the second.
const (
	// leaseTime is how long a record stays hidden after a death. It is extended while the renewer works.
	leaseTime = 8 * time.Second
	// leasedDeliveries are those with a lease. A renewer that dies again and again holds its records for longer, so that
	// they do not become dead letters within minutes.
	leasedDeliveries = 3
)

// lease keeps records hidden, for a short time at once.
type lease struct {
	keeper *Timekeeper
	renew  func(ctx context.Context, queue string, lock time.Duration, records ...provider.Record) ([]provider.Record, error)

	// records are given to one goroutine at a time: to that which calls the queue with them, or changes them.
	records chan []provider.Record
}

// lease shortens the time for which timers that are nearly due are hidden, beside what is done with them, until release.
// It leaves alone records that were fetched: their process renews their locks.
func (k *Timekeeper) lease(ctx context.Context, timers []provider.LockedTimer) (held *lease, release func()) {
	var records []provider.Record
	for i := range timers {
		if r := timers[i].Record; r.Hold == nil && r.ReceiveCount <= leasedDeliveries {
			records = append(records, r)
		}
	}
	queues, ok := offered.By[provider.Poller](k.provider)
	if !ok || len(records) == 0 {
		return nil, func() {}
	}
	held = &lease{keeper: k, renew: queues.RenewRecords, records: make(chan []provider.Record, 1)}
	held.records <- records
	if slices.ContainsFunc(records, hasFailedBefore) { // perhaps since it kills its process
		held.tryExtend(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		held.keep(ctx)
	}()
	return held, func() {
		stop()
		<-ended
	}
}

func hasFailedBefore(r provider.Record) bool { return r.ReceiveCount > 1 }

// keep extends the lease until ctx ends.
func (l *lease) keep(ctx context.Context) {
	for ctx.Err() == nil {
		pause := leaseTime / intake.Renewals
		if !l.tryExtend(ctx) {
			pause = leaseTime / intake.RenewalTries
		}
		_ = sleep.For(ctx, pause) // the loop sees that ctx has ended
	}
}

func (l *lease) tryExtend(ctx context.Context) bool {
	err := l.extend(ctx)
	if err != nil && ctx.Err() == nil {
		l.keeper.options.Logger.WarnContext(ctx, "timer lease failed, retrying", "event", logevent.TimerLeaseFailed,
			"error", err)
	}
	return err == nil
}

func (l *lease) extend(ctx context.Context) error {
	records := <-l.records
	defer func() { l.records <- records }()
	if len(records) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, leaseTime/2) //nolint:mnd // so that another try comes within the lease
	defer stop()
	_, err := l.renew(ctx, provider.QueueTimers, leaseTime, records...)
	return err
}

// drop ends the lease of records, if they have one. No extension follows the visibility that they are given next.
func (l *lease) drop(records []provider.Record) {
	if l == nil {
		return
	}
	l.records <- slices.DeleteFunc(<-l.records, func(r provider.Record) bool {
		return slices.ContainsFunc(records, func(o provider.Record) bool { return o.ID == r.ID })
	})
}
