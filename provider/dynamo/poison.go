package dynamo

import (
	"maps"
	"slices"
)

// deadLetterQueues returns the sorted names of the queues that have a dead-letter queue.
func (p *Provider) deadLetterQueues() []string { return slices.Sorted(maps.Keys(p.queue.DeadLetters)) }
