package admin

import (
	"context"
	"fmt"
	"iter"

	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// SweepPayloads deletes large payloads that no instance refers to and that are at least two days old. These are
// payloads of purged executions and of executions that never started. Processes that died or were late leave such
// payloads. All other payloads are deleted with their instance.
//
// SweepPayloads yields the number of deleted payloads after each page of a thousand keys. A page costs one S3 call and
// one read per execution. After an error, you can call SweepPayloads again. SweepPayloads does nothing if the hub has
// no payload store.
func (c *Client) SweepPayloads(ctx context.Context) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		if err := c.requireProvider("SweepPayloads"); err != nil {
			yield(0, err)
			return
		}
		store, ok := unwrap.As[provider.PayloadStoreProvider](c.hub)
		for after := ""; ok; {
			next, deleted, err := store.SweepPayloads(ctx, after)
			if err != nil {
				yield(deleted, fmt.Errorf("admin: sweep payloads: %w", err))
				return
			}
			if !yield(deleted, nil) || next == "" {
				return
			}
			after = next
		}
	}
}
