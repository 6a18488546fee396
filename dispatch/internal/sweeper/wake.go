package sweeper

import (
	"context"
	"slices"

	"github.com/perdure/perdure/provider"
)

const (
	wakeBatchSize   = 10 // the limit of a queue
	wakeConcurrency = 16 // batches
	wakesLogged     = 10 // of each page of instances; the log line counts the others
)

// wakeAll sends a message to each of the instances, in concurrent batches, and returns the instances that received one.
func (s *Sweeper) wakeAll(
	ctx context.Context, r *result, instances []provider.Instance, message func(*provider.Instance) provider.Message,
) []provider.Instance {
	batches := slices.Collect(slices.Chunk(instances, wakeBatchSize))
	sent := make(chan []provider.Instance, len(batches))
	forEach(ctx, slices.Values(batches), wakeConcurrency, func(batch []provider.Instance) {
		ms := make([]provider.Message, len(batch))
		for i := range batch {
			ms[i] = message(&batch[i])
		}
		if err := s.Provider.EnqueueForOrchestrator(ctx, ms...); err != nil {
			r.add(ctx, err)
			return
		}
		r.addWoken(len(batch))
		sent <- batch
	})
	close(sent)
	var woken []provider.Instance
	for batch := range sent {
		woken = append(woken, batch...)
	}
	return woken
}
