package outbox

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// Ack commits a turn by creating its segment, and then sends the outputs of the segment.
func (ob *Outbox) Ack(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	if !t.LockedUntil.IsZero() && !ob.now().Before(t.LockedUntil) {
		return nil, fmt.Errorf("dynamo: instance %q: segment %d was not committed: %w", t.InstanceID, t.Head.Segment+1,
			provider.ErrLockLost)
	}
	s := t.Segment()
	if err := ob.segments.Commit(ctx, t, s); err != nil {
		return nil, err
	}
	refused, err := ob.Dispatch(ctx, t, s)
	if err != nil {
		return refused, fmt.Errorf("%w: %w", provider.ErrDispatchIncomplete, err)
	}
	return refused, nil
}
