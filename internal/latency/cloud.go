package latency

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/meter"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/sleep"
)

// Source says how long the next call of a kind takes.
type Source func(d *Distribution) time.Duration

// Means has each call take its mean.
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

// Drawn has each call take what chance says, from a seed. In a bubble whose order is not fixed, the draws are not either: it is their distribution
// that is the same.
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

// Intercept is an interceptor that lets each call to a cloud take its time: a half on the way there, a half on the way back. What an event source mapping
// does itself, and a call that is not in the list, takes none.
func (l *List) Intercept(take Source) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		d, ok := l.Calls[nameOf(&c)]
		if !ok {
			return next()
		}
		whole := take(&d)
		if err := sleep.For(ctx, whole/2); err != nil { //nolint:mnd // a half
			return err
		}
		err := next()
		if late := sleep.For(ctx, whole-whole/2); err == nil { //nolint:mnd // the other half
			err = late
		}
		return err
	}
}

// nameOf is the name of a call in the list.
func nameOf(c *simaws.Call) string {
	if c.Service == "Lambda" {
		return "" // Hop says how long a batch is on its way
	}
	name := c.Service + "." + c.Operation
	if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok {
		kind, _ := meter.QueueOf(*in.QueueUrl)
		return name + " " + kind
	}
	return name
}
