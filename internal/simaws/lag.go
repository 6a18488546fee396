package simaws

import "sync"

// past stores the items that the latest writes replaced, for stale reads.
type past struct {
	mu    sync.Mutex
	depth int
	log   []change
}

// change is a write with the replaced item. old is nil if there was no item.
type change struct {
	key key
	old item
}

// Lag makes eventually consistent reads stale: GetItem and Query without ConsistentRead, and every Query of an index.
// They read the state of the table before the last n item writes. Each item of a transaction counts as one write, so
// that a read may return part of a transaction. 0 is the default and ends the lag. Items written before the call of Lag
// remain visible.
func (t *Table) Lag(n int) {
	t.lock(everyShard)
	defer t.unlock(everyShard)

	t.past.depth = max(n, 0)
	t.past.trim()
}

// note records a write. The shard of its key must be locked, so that depth does not change.
func (p *past) note(k key, old item) {
	if p.depth == 0 {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.log = append(p.log, change{k, old})
	if len(p.log) >= 2*p.depth {
		p.trim()
	}
}

func (p *past) trim() {
	if p.depth == 0 {
		p.log = nil

		return
	}

	p.log = append([]change(nil), p.latest()...)
}

// latest returns the writes that a stale read does not observe, oldest first.
func (p *past) latest() []change {
	return p.log[max(0, len(p.log)-p.depth):]
}

// undone maps the keys of the unobserved writes to the items before the first of these writes. All shards must be
// locked.
func (p *past) undone() map[key]item {
	undone := map[key]item{}

	for _, c := range p.latest() {
		if _, known := undone[c.key]; !known {
			undone[c.key] = c.old
		}
	}

	return undone
}

// staleItem returns the earlier state of an item. All shards must be locked.
func (t *Table) staleItem(k key) item {
	if old, known := t.past.undone()[k]; known {
		return old
	}

	if r := t.row(k, t.shardOf(k.partition)); r != nil {
		return r.item
	}

	return nil
}

// staleRows returns the earlier state of a partition of the table. All shards must be locked.
func (t *Table) staleRows(partition string) *rows {
	undone, out := t.past.undone(), &rows{}

	if live := t.partition(partition, t.shardOf(partition)); live != nil {
		for _, chunk := range live.chunks {
			for _, r := range chunk {
				if _, known := undone[key{partition, r.sort}]; !known {
					out.add(r)
				}
			}
		}
	}

	for k, old := range undone {
		if k.partition == partition && old != nil {
			out.insert(rowOf(k.sort, "", old))
		}
	}

	return out
}

// stale returns the earlier state of a partition of the index. All shards of the table must be locked.
func (ix *index) stale(partition string) *rows {
	undone, out := ix.table.past.undone(), &rows{}
	ties := make(map[string]bool, len(undone))

	for k := range undone {
		ties[k.tie()] = true
	}

	if live := ix.partitions[partition]; live != nil {
		for _, chunk := range live.chunks {
			for _, r := range chunk {
				if !ties[r.tie] {
					out.add(r)
				}
			}
		}
	}

	for k, old := range undone {
		if at, ok := ix.keyOf(old); ok && at.partition == partition {
			out.insert(rowOf(at.sort, k.tie(), old))
		}
	}

	return out
}

// rowOf returns the row of an item that was stored, so its size is valid.
func rowOf(sort, tie string, it item) *row {
	size, err := sizeOf(it)
	if err != nil {
		size = 0
	}

	return &row{sort: sort, tie: tie, item: it, size: size}
}
