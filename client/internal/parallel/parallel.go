// Package parallel runs reads concurrently.
package parallel

import (
	"errors"
	"sync"
	"sync/atomic"
)

// maxConcurrency is the number of concurrent reads.
const maxConcurrency = 16

// Each calls read for each item, with at most maxConcurrency calls at a time. After an error it starts no further
// reads, so that a throttled table does not receive a thousand calls.
func Each[T any](items []T, read func(T) error) error {
	var (
		reads  sync.WaitGroup
		failed atomic.Bool
	)
	slots := make(chan struct{}, maxConcurrency)
	errs := make([]error, len(items))

	for i := range items {
		slots <- struct{}{}
		if failed.Load() {
			break
		}
		reads.Go(func() {
			defer func() { <-slots }()
			if errs[i] = read(items[i]); errs[i] != nil {
				failed.Store(true)
			}
		})
	}
	reads.Wait()
	return errors.Join(errs...)
}
