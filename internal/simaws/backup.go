package simaws

import (
	"fmt"
	"strings"
)

// Backup contains the items of a table at one moment.
type Backup struct{ items []item }

// Len returns the number of items in the backup.
func (b Backup) Len() int { return len(b.items) }

// Backup copies all items at one moment, with whole transactions only, like point-in-time recovery.
func (t *Table) Backup() Backup {
	t.lock(everyShard)
	defer t.unlock(everyShard)

	var b Backup

	for i := range t.shards {
		for name, p := range t.shards[i].partitions {
			if t.belongsToOtherTable(name) {
				continue
			}

			for _, chunk := range p.chunks {
				for _, r := range chunk {
					b.items = append(b.items, r.item) // stored items never change
				}
			}
		}
	}

	return b
}

// belongsToOtherTable reports whether a partition belongs to another table.
func (t *Table) belongsToOtherTable(partition string) bool {
	for _, other := range t.others {
		if strings.HasPrefix(partition, other.space) {
			return true
		}
	}

	return false
}

// Restore replaces all items by the items of a backup. It also deletes the items of tables that Add added. On AWS, a
// restore creates another table.
func (t *Table) Restore(b Backup) {
	t.lock(everyShard)

	for i := range t.shards {
		t.shards[i].partitions = map[string]*rows{}
	}

	for _, ix := range t.indexes {
		ix.partitions = map[string]*rows{}
	}

	t.past.log = nil
	t.unlock(everyShard)

	for _, it := range b.items {
		w, err := t.prepare(actionPut, it, request{table: &t.Name})
		if err == nil {
			_, _, err = w.single()
		}

		if err != nil {
			panic(fmt.Sprintf("simaws: restore an item of a backup: %v", err))
		}
	}
}
