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

// itemOverhead is the number of bytes that DynamoDB bills for an item in addition to its attributes, in the table and
// in each index.
const itemOverhead = 100

// StoredBytes returns the billed storage of the table with its indexes, in bytes. Like [Table.Heads], it is not
// counted.
func (t *Table) StoredBytes() (size int64) {
	t.lock(everyShard)
	defer t.unlock(everyShard)

	for i := range t.shards {
		for name, p := range t.shards[i].partitions {
			if t.belongsToOtherTable(name) {
				continue
			}

			for _, chunk := range p.chunks {
				for _, r := range chunk {
					size += int64(r.size+itemOverhead) + t.storedInIndexes(r.item)
				}
			}
		}
	}

	return size
}

// storedInIndexes returns the size of an item in the indexes that contain it.
func (t *Table) storedInIndexes(it item) (size int64) {
	for _, ix := range t.indexes {
		if _, is := ix.keyOf(it); is {
			size += int64(ix.size(it) + itemOverhead)
		}
	}

	return size
}
