package memhub

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// base is the part that all stores share: one lock, so that each call is atomic, and a clock.
type base struct {
	mu  sync.Mutex
	now func() time.Time
	// failure is the error of all calls, or nil.
	failure error
}

// begin locks the hub for one call, unless the call fails.
func (st *base) begin(ctx context.Context) error {
	st.mu.Lock()
	err := st.failure
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		st.mu.Unlock()
		return err
	}
	return nil
}

// call runs f while the hub is locked, unless the call fails.
func (st *base) call(ctx context.Context, f func() error) error {
	if err := st.begin(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	return f()
}

// callFor is like call for a function with a result.
func callFor[T any](ctx context.Context, b *base, f func() (T, error)) (result T, err error) {
	err = b.call(ctx, func() error {
		result, err = f()
		return err
	})
	return result, err
}

// time returns the current time with the resolution in which it is stored.
func (st *base) time() time.Time { return st.now().UTC().Truncate(time.Millisecond) }

// sequence yields the items that read returns. read runs while the hub is locked.
func sequence[T any](ctx context.Context, b *base, read func() []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := b.begin(ctx); err != nil {
			var none T
			yield(none, err)
			return
		}
		all := read()
		b.mu.Unlock()
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// search yields the instances that find returns, if there are any. find runs while the hub is locked.
func search(
	ctx context.Context, b *base, find func() []provider.Instance,
) iter.Seq2[[]provider.Instance, error] {
	return sequence(ctx, b, func() (pages [][]provider.Instance) {
		if found := find(); len(found) > 0 {
			pages = append(pages, found)
		}
		return pages
	})
}
