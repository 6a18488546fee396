package simaws

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Bytes per unit of capacity.
const (
	writeUnit = 1 << 10
	readUnit  = 4 << 10
)

// writeUnits returns the write units for an item of this size. A write of nothing costs one unit.
func writeUnits(size int) int64 { return max(1, int64(size+writeUnit-1)/writeUnit) }

// halfReads returns the cost of a read of this size in half read units. A read that finds nothing costs as much as a
// read of 4 KB.
func halfReads(size int, consistent bool) int64 {
	units := max(1, int64(size+readUnit-1)/readUnit)
	if consistent {
		return 2 * units
	}

	return units
}

// consumed is the cost of a write in the table and in each index.
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

// consumed returns the cost of a write that was evaluated and not applied yet. factor is 2 in transactions.
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

// report returns the response for ReturnConsumedCapacity.
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
