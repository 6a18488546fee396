package simaws

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The sizes in bytes of one unit of capacity.
const (
	writeUnit = 1 << 10
	readUnit  = 4 << 10
)

// writeUnits returns the units of a write of an item of this size in bytes. A write of nothing takes one unit.
func writeUnits(size int) int64 { return max(1, int64(size+writeUnit-1)/writeUnit) }

// halfReads returns the units of a read of this size in bytes, in halves of a unit. A read that finds nothing takes as
// much as 4 KB.
func halfReads(size int, consistent bool) int64 {
	units := max(1, int64(size+readUnit-1)/readUnit)
	if consistent {
		return 2 * units
	}

	return units
}

// consumed holds the units that a write consumed in the table and in each index.
type consumed struct {
	table   int64
	indexes []int64
}

func (c *consumed) total() int64 {
	total := c.table
	for _, units := range c.indexes {
		total += units
	}

	return total
}

// consumed returns the units of a write that was evaluated and not yet applied. factor is 2 in transactions.
func (w *write) consumed(factor int64) consumed {
	c := consumed{table: factor * writeUnits(max(w.previous, w.size))}
	if len(w.table.indexes) == 0 || w.action == actionCheck {
		return c
	}

	c.indexes = make([]int64, len(w.table.indexes))
	for i, ix := range w.table.indexes {
		c.indexes[i] = factor * ix.units(w.scope.item, w.next)
	}

	return c
}

// report returns the response to ReturnConsumedCapacity.
func (t *Table) report(want ddbtypes.ReturnConsumedCapacity, c consumed) *ddbtypes.ConsumedCapacity {
	if want == "" || want == ddbtypes.ReturnConsumedCapacityNone {
		return nil
	}

	out := &ddbtypes.ConsumedCapacity{TableName: aws.String(t.Name), CapacityUnits: aws.Float64(float64(c.total()))}
	if want != ddbtypes.ReturnConsumedCapacityIndexes {
		return out
	}

	out.Table = &ddbtypes.Capacity{CapacityUnits: aws.Float64(float64(c.table))}

	for i, units := range c.indexes {
		if units == 0 {
			continue
		}

		if out.GlobalSecondaryIndexes == nil {
			out.GlobalSecondaryIndexes = map[string]ddbtypes.Capacity{}
		}

		out.GlobalSecondaryIndexes[t.indexes[i].Name] = ddbtypes.Capacity{CapacityUnits: aws.Float64(float64(units))}
	}

	return out
}
