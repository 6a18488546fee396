package timers

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// Lambda hides a record for at least the timeout of its function, which is a minute for the renewer. If the renewer
// crashed, its timers would be late by that time.
const (
	// leaseTime is the time for which a record stays hidden after its process crashed. The renewer extends the lease
	// while it works.
	leaseTime = 8 * time.Second
	// maxLeasedDeliveries is the number of deliveries with a lease. If the renewer crashes repeatedly, it holds its
	// records for longer, so that they do not become dead letters within minutes.
	maxLeasedDeliveries = 3
)

// lease keeps records hidden for a short time, which it extends repeatedly. A nil lease has no records.
type lease struct {
	log    *slog.Logger
	poller provider.Poller
	// records has a capacity of 1 and works like a lock: one goroutine at a time renews or changes the records.
	records chan []provider.Record
}

// lease shortens the time for which timers that are nearly due are hidden, and extends it until release is called. It
// skips records of polling processes, which renew their locks themselves.
func (h Handler) lease(ctx context.Context, timers []provider.LockedTimer) (leased *lease, release func()) {
	var records []provider.Record
	for i := range timers {
		if r := timers[i].Record; r.Hold == nil && r.ReceiveCount <= maxLeasedDeliveries {
			records = append(records, r)
		}
	}
	poller, ok := unwrap.As[provider.Poller](h.Provider)
	if !ok || len(records) == 0 {
		return nil, func() {}
	}
	leased = &lease{log: h.Logger, poller: poller, records: make(chan []provider.Record, 1)}
	leased.records <- records
	if slices.ContainsFunc(records, isRedelivery) { // one of them may crash the process
		leased.tryExtend(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		leased.run(ctx)
	}()
	return leased, func() {
		stop()
		<-ended
	}
}

func isRedelivery(r provider.Record) bool { return r.ReceiveCount > 1 }

func (l *lease) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := leaseTime / intake.Renewals
		if !l.tryExtend(ctx) {
			pause = leaseTime / intake.RenewalTries
		}
		_ = sleep.For(ctx, pause) // the loop checks ctx
	}
}

func (l *lease) tryExtend(ctx context.Context) bool {
	err := l.extend(ctx)
	if err != nil && ctx.Err() == nil {
		l.log.WarnContext(ctx, "timer lease failed, retrying", "event", logevent.TimerLeaseFailed, "error", err)
	}
	return err == nil
}

func (l *lease) extend(ctx context.Context) error {
	records := <-l.records
	defer func() { l.records <- records }()
	if len(records) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, leaseTime/2) //nolint:mnd // leaves time for a retry within the lease
	defer stop()
	_, err := l.poller.RenewRecords(ctx, provider.QueueTimers, leaseTime, records...)
	return err
}

// drop removes records from the lease, so that no extension overwrites the delay with which they are released.
func (l *lease) drop(records []provider.Record) {
	if l == nil {
		return
	}
	l.records <- slices.DeleteFunc(<-l.records, func(r provider.Record) bool {
		return slices.ContainsFunc(records, func(o provider.Record) bool { return o.ID == r.ID })
	})
}
