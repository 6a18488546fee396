package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// DecodeTimers implements provider.Timers.
func (p *Provider) DecodeTimers(records []provider.Record) (timers []provider.LockedTimer, unreadable []provider.Unreadable) {
	return p.timers.Decode(records)
}

// HoldTimers implements provider.Timers.
func (p *Provider) HoldTimers(ctx context.Context, timers ...provider.Timer) error {
	return p.timers.Hold(ctx, timers...)
}
