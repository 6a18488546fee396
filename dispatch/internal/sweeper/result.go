package sweeper

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/perdure/perdure/provider"
)

// maxErrors limits the errors that a repair returns. During an outage each instance has one.
const maxErrors = 10

// result counts the work of a repair in a sweep. It is safe for concurrent use.
type result struct {
	mu       sync.Mutex
	woken    int // instances
	done     int // other items
	failed   int
	errs     []error // of the first items that failed
	cutShort bool    // the time limit expired before the repair ended
}

// add counts one item as done, or as failed with err. An error after the end of ctx is not a failure, because the time
// limit expired.
func (r *result) add(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.done++
	case isUnsupported(err): // the provider lacks the optional interface of the repair
	case ctx.Err() != nil:
		r.cutShort = true
	default:
		if r.failed++; len(r.errs) < maxErrors {
			r.errs = append(r.errs, err)
		}
	}
}

// isUnsupported reports whether the provider lacks an optional interface. Errors of the network and the operating
// system can be an errors.ErrUnsupported too, and count as failures.
func isUnsupported(err error) bool {
	_, unsupported := errors.AsType[provider.UnsupportedError](err)
	return unsupported
}

func (r *result) addWoken(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.woken += n
}

// forEach calls do for each item, at most limit calls at once, until ctx ends. It waits for all calls.
func forEach[T any](ctx context.Context, items iter.Seq[T], limit int, do func(T)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, limit)
	for item := range items {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			do(item)
			<-slots
		})
	}
	running.Wait()
}
