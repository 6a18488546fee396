package memhub

import (
	"context"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// timers sends and decodes timers (provider.Timers). A timer is a delayed record.
type timers struct {
	*base

	queues *queues
}

// DecodeTimers implements provider.Timers.
func (st *timers) DecodeTimers(
	records []provider.Record,
) (timers []provider.LockedTimer, unreadable []provider.Unreadable) {
	return decodeRecords(records, func(r provider.Record) (provider.LockedTimer, error) {
		t, err := wire.DecodeTimer(r.Body)
		if err == nil {
			err = checkHub(&t.Hub)
		}
		return provider.LockedTimer{Timer: t, Record: r}, err
	})
}

// HoldTimers implements provider.Timers.
func (st *timers) HoldTimers(ctx context.Context, timers ...provider.Timer) error {
	return st.call(ctx, func() error {
		for i := range timers {
			st.send(&timers[i])
		}
		return nil
	})
}

func (st *timers) send(t *provider.Timer) {
	sent := *t
	sent.Hub = Name
	st.queues.byName[provider.QueueTimers].Send(st.now(), st.queues.delayedUntil(sent.FireAt), "", encode(&sent), "")
}
