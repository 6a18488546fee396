package awscall

import (
	"errors"
	"sync"

	"github.com/perdure/perdure/internal/goroutine"
)

// MaxParallel is the maximum number of concurrent batches of a turn.
const MaxParallel = 16

// Parallel runs fs concurrently, with a limit, and joins their errors. The last one runs in the calling goroutine.
func Parallel(fs ...func() error) error { return parallel(MaxParallel, fs) }

// ForEach calls f with the numbers below n like Parallel.
func ForEach(n int, f func(i int) error) error { return ForEachN(MaxParallel, n, f) }

// ForEachN is like ForEach with up to most concurrent calls.
func ForEachN(most, n int, f func(i int) error) error {
	fs := make([]func() error, n)
	for i := range fs {
		fs[i] = func() error { return f(i) }
	}
	return parallel(most, fs)
}

// parallel is like Parallel with up to most concurrent functions.
func parallel(most int, fs []func() error) error {
	switch len(fs) {
	case 0:
		return nil
	case 1:
		return fs[0]()
	}
	var wg sync.WaitGroup
	errs := make([]error, len(fs))
	places := make(chan struct{}, most)
	last := len(fs) - 1
	for i, f := range fs[:last] {
		places <- struct{}{}
		wg.Go(func() {
			goroutine.ReserveStack()
			errs[i] = f()
			<-places
		})
	}
	errs[last] = fs[last]()
	wg.Wait()
	return errors.Join(errs...)
}
