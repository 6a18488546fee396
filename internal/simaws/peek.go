package simaws

import "iter"

// Heads yields each partition of an index that contains an item: its key and its lowest sort key, in no particular
// order. No interceptor receives the call, and it is not counted. Drivers use it to decide how far time may advance.
func (t *Table) Heads(index string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		ix := t.index(index)
		if ix == nil {
			return
		}

		ix.mu.Lock()
		defer ix.mu.Unlock()

		for partition, rows := range ix.partitions {
			if len(rows.chunks) > 0 && !yield(partition, rows.chunks[0][0].sort) {
				return
			}
		}
	}
}

// Len returns the number of messages in a queue, visible or not. It returns 0 for an unknown URL. Like [Table.Heads],
// it is not counted.
func (q *Queues) Len(queueURL string) int {
	found, err := q.find(&queueURL)
	if err != nil {
		return 0
	}

	found.mu.Lock()
	defer found.mu.Unlock()

	return len(found.messages)
}
