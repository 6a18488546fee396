package simaws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// GetItem reads one item. Projections are not simulated.
func (t *Table) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return do(ctx, t.cloud, opGetItem, in, func() (*dynamodb.GetItemOutput, error) {
		if in.ProjectionExpression != nil || in.AttributesToGet != nil {
			return nil, unsupported("a projection of GetItem")
		}

		t, err := t.named(in.TableName)
		if err != nil {
			return nil, err
		}

		k, err := t.exactKey(in.Key)
		if err != nil {
			return nil, err
		}

		consistent := aws.ToBool(in.ConsistentRead)
		it, size := t.get(k, consistent)
		halves := halfReads(size, consistent)
		t.cloud.usage.halfReads.Add(halves)

		return &dynamodb.GetItemOutput{
			Item: clone(it), ConsumedCapacity: t.reportRead(in.ReturnConsumedCapacity, halves, nil),
		}, nil
	})
}

func (t *Table) get(k key, consistent bool) (it item, size int) {
	mask := t.shardOf(k.partition)

	t.lock(mask)

	r := t.row(k, mask)
	lagging := t.past.depth > 0 && !consistent

	if r != nil {
		it, size = r.item, r.size
	}

	t.unlock(mask)

	if !lagging {
		return it, size
	}

	t.lock(everyShard)
	defer t.unlock(everyShard)

	it = t.staleItem(k)

	return it, rowOf("", "", it).size
}

// reportRead returns the response for ReturnConsumedCapacity of a read.
func (t *Table) reportRead(want ddbtypes.ReturnConsumedCapacity, halves int64, ix *index) *ddbtypes.ConsumedCapacity {
	if want == "" || want == ddbtypes.ReturnConsumedCapacityNone {
		return nil
	}

	units := aws.Float64(float64(halves) / 2) //nolint:mnd // in half units
	out := &ddbtypes.ConsumedCapacity{TableName: aws.String(t.Name), CapacityUnits: units}

	switch {
	case want != ddbtypes.ReturnConsumedCapacityIndexes:
	case ix == nil:
		out.Table = &ddbtypes.Capacity{CapacityUnits: units}
	default:
		out.Table = &ddbtypes.Capacity{CapacityUnits: aws.Float64(0)}
		out.GlobalSecondaryIndexes = map[string]ddbtypes.Capacity{ix.Name: {CapacityUnits: units}}
	}

	return out
}
