package latency

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/meter"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/sleep"
)

// Hops is an interceptor of what event source mappings do: a batch takes the way of its queue's hop before its function is called, less what its send
// has taken by then, and the deletes take their time. The list's hops are from before a send to the handler's begin; of a send it has half behind it
// when its message is there, for which the median stands. So a send that is slow makes a hop slower here than it was measured, never quicker.
func (l *List) Hops(take Source) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if c.Operation != "Invoke" {
			d := l.Calls["SQS.DeleteMessageBatch"]
			if err := sleep.For(ctx, take(&d)/2); err != nil { //nolint:mnd // when it is done, before the mapping knows it
				return err
			}
			return next()
		}
		kind, _ := meter.QueueOf(c.Queue)
		hop, send := l.Calls["Lambda.Hop "+kind], l.Calls["SQS.SendMessageBatch "+kind]
		way := take(&hop) - send.At(0)/2 //nolint:mnd // a half
		if err := sleep.For(ctx, max(way, time.Millisecond)); err != nil {
			return err
		}
		return next()
	}
}
