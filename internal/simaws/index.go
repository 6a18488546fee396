package simaws

import (
	"slices"
	"sync"
)

// index is a secondary index. It is written together with the table.
type index struct {
	Index

	table      *Table
	projected  []string // the projected attributes without duplicates; nil means all
	mu         sync.Mutex
	partitions map[string]*rows
}

// newIndex returns an empty index of a table.
func newIndex(t *Table, of Index) *index {
	ix := &index{Index: of, table: t, partitions: map[string]*rows{}}
	if of.Include == nil {
		return ix
	}

	names := slices.Concat([]string{of.PartitionKey, of.SortKey, t.PartitionKey, t.SortKey}, of.Include)
	slices.Sort(names)

	ix.projected = slices.Compact(names)

	return ix
}

// index returns an index by name.
func (t *Table) index(name string) *index {
	for _, ix := range t.indexes {
		if ix.Name == name {
			return ix
		}
	}

	return nil
}

// keyOf returns the index key of an item. ok is false if the index does not contain the item.
func (ix *index) keyOf(it item) (k key, ok bool) {
	partition := it[ix.PartitionKey]
	if partition == nil {
		return key{}, false
	}

	k.partition, _ = ix.table.keyText(ix.PartitionKey, partition)

	if ix.SortKey == "" {
		return k, true
	}

	sort := it[ix.SortKey]
	if sort == nil {
		return key{}, false
	}

	k.sort, _ = ix.table.keyText(ix.SortKey, sort)

	return k, true
}

// check rejects an item with an invalid index key.
func (ix *index) check(it item) error {
	for _, name := range []string{ix.PartitionKey, ix.SortKey} {
		v := it[name]
		if v == nil {
			continue
		}

		text, problem := ix.table.keyText(name, v)
		if problem != "" {
			return invalid("One or more parameter values were invalid: %s IndexName: %s", problem, ix.Name)
		}

		if text == "" {
			return invalid("One or more parameter values are not valid. "+
				"A value specified for a secondary index key is not supported. "+
				"The AttributeValue for a key attribute cannot contain an empty string value. "+
				"IndexName: %s, IndexKey: %s", ix.Name, name)
		}
	}

	return nil
}

// tie returns a text that makes the order of an index total.
func (k key) tie() string { return k.partition + "\x00" + k.sort }

// write updates the index after a write to the table.
func (ix *index) write(k key, old, next item, size int) {
	before, was := ix.keyOf(old)
	after, is := ix.keyOf(next)

	if !was && !is {
		return
	}

	ix.mu.Lock()
	defer ix.mu.Unlock()

	if was && is && before == after {
		if r := ix.partitions[before.partition].find(before.sort, k.tie()); r != nil {
			r.item, r.size = next, size
		}

		return
	}

	if was {
		p := ix.partitions[before.partition]
		if p.remove(before.sort, k.tie()); len(p.chunks) == 0 {
			delete(ix.partitions, before.partition)
		}
	}

	if is {
		p := ix.partitions[after.partition]
		if p == nil {
			p = &rows{}
			ix.partitions[after.partition] = p
		}

		p.insert(&row{sort: after.sort, tie: k.tie(), item: next, size: size})
	}
}

// units returns the cost of a write in this index: a deletion and an insertion if the key changes, one write if only
// projected attributes change, and nothing if the entry does not change.
func (ix *index) units(old, next item) int64 {
	before, was := ix.keyOf(old)
	after, is := ix.keyOf(next)

	switch {
	case !was && !is:
		return 0
	case was && is && before == after:
		if ix.same(old, next) {
			return 0
		}

		return writeUnits(max(ix.size(old), ix.size(next)))
	}

	units := int64(0)
	if was {
		units += writeUnits(ix.size(old))
	}

	if is {
		units += writeUnits(ix.size(next))
	}

	return units
}

// same reports whether the projection of an item is unchanged.
func (ix *index) same(old, next item) bool {
	if ix.Include == nil {
		if len(old) != len(next) {
			return false
		}

		for name := range old {
			if next[name] == nil || !equal(old[name], next[name]) {
				return false
			}
		}

		return true
	}

	for _, name := range ix.Include {
		a, b := old[name], next[name]
		if (a == nil) != (b == nil) || (a != nil && !equal(a, b)) {
			return false
		}
	}

	return true
}

// project returns a copy of the projected attributes of an item.
func (ix *index) project(it item) item {
	if ix.Include == nil {
		return clone(it)
	}

	out := make(item, len(ix.projected))

	for _, name := range ix.projected {
		if v := it[name]; v != nil {
			out[name] = v
		}
	}

	return out
}

// size returns the size of the projected attributes of an item.
func (ix *index) size(it item) int {
	if ix.Include == nil {
		size, err := sizeOf(it)
		if err != nil {
			return 0
		}

		return size
	}

	size := 0

	for _, name := range ix.projected {
		if v := it[name]; v != nil {
			n, err := valueSize(v)
			if err != nil {
				return 0
			}

			size += len(name) + n
		}
	}

	return size
}
