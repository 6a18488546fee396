package simaws

import "iter"

// Heads yields, for each partition of an index that holds an item, its key and the lowest sort key in it, in no order. It
// is no call: no interceptor sees it, and nothing counts it. It is for a driver that decides how far time may pass.
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

// Len returns how many messages a queue holds, visible or not; 0 for an unknown URL. Like [Table.Heads] it is no call.
func (q *Queues) Len(queueURL string) int {
	found, err := q.find(&queueURL)
	if err != nil {
		return 0
	}

	found.mu.Lock()
	defer found.mu.Unlock()

	return len(found.messages)
}
