package latency

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/meter"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/sleep"
)

// Hops returns an interceptor that delays the event source mappings. It delays a batch, before its function is called,
// by the duration of the queue's hop, and it delays deletes. The hops of the list include the whole send, but a message
// is in the queue after half of the send. Hops therefore subtracts half of the median send. A slow send makes a hop
// slower than measured, never faster.
func (l *List) Hops(take Source) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if c.Operation != "Invoke" {
			d := l.Calls["SQS.DeleteMessageBatch"]
			if err := sleep.For(ctx, take(&d)/2); err != nil { //nolint:mnd // until the delete has an effect
				return err
			}
			return next()
		}
		kind, _ := meter.QueueOf(c.Queue)
		hop, send := l.Calls["Lambda.Hop "+kind], l.Calls["SQS.SendMessageBatch "+kind]
		delay := take(&hop) - send.At(0)/2 //nolint:mnd // a half
		if err := sleep.For(ctx, max(delay, time.Millisecond)); err != nil {
			return err
		}
		return next()
	}
}
