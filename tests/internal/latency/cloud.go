package latency

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/tests/internal/meter"
)

// Source returns the duration of the next call, given its distribution.
type Source func(d *Distribution) time.Duration

// Means returns a Source of the mean of each distribution.
func Means() Source {
	var means sync.Map
	return func(d *Distribution) time.Duration {
		if m, ok := means.Load(*d); ok {
			return m.(time.Duration) //nolint:forcetypeassert // nothing else is stored
		}
		m := d.Mean()
		means.Store(*d, m)
		return m
	}
}

// Drawn returns a Source of random durations that follow the distributions. The seed makes the sequence of durations
// reproducible, but concurrent calls may draw from it in any order.
func Drawn(seed uint64) Source {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 1))
	return func(d *Distribution) time.Duration {
		mu.Lock()
		z := rng.NormFloat64()
		mu.Unlock()
		return d.At(z)
	}
}

// Intercept returns an interceptor that delays the calls of a cloud. Half of the duration passes before a call and half
// after it. Calls that are not in the list, and the calls of event source mappings, are not delayed.
func (l *List) Intercept(take Source) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		d, ok := l.Calls[nameOf(&c)]
		if !ok {
			return next()
		}
		whole := take(&d)
		if err := sleep.For(ctx, whole/2); err != nil { //nolint:mnd // half
			return err
		}
		err := next()
		if late := sleep.For(ctx, whole-whole/2); err == nil { //nolint:mnd // the other half
			err = late
		}
		return err
	}
}

// nameOf returns the name of a call in the list.
func nameOf(c *simaws.Call) string {
	if c.Service == "Lambda" {
		return "" // Hops delays these
	}
	name := c.Service + "." + c.Operation
	if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok {
		kind, _ := meter.QueueOf(*in.QueueUrl)
		return name + " " + kind
	}
	return name
}

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
