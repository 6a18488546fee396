package meter

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/pricing"
)

// observeTable observes calls to DynamoDB.
func observeTable(input, output any, err error) (observation, bool) {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		out, _ := output.(*dynamodb.GetItemOutput)
		units := unitsOf(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity })
		return read("GetItem", units, keyOwner(in.Key)), true
	case *dynamodb.QueryInput:
		out, _ := output.(*dynamodb.QueryOutput)
		units := unitsOf(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity })
		return read("Query", units, valueOwners(in.ExpressionAttributeValues)), true
	case *dynamodb.PutItemInput:
		out, _ := output.(*dynamodb.PutItemOutput)
		units := unitsOf(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity })
		return write("PutItem", units+failedUnits(err, itemBytes(in.Item)), itemOwner(in.Item)), true
	case *dynamodb.UpdateItemInput:
		out, _ := output.(*dynamodb.UpdateItemOutput)
		units := unitsOf(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity })
		return write("UpdateItem", units+failedUnits(err, 0), keyOwner(in.Key)), true
	case *dynamodb.DeleteItemInput:
		out, _ := output.(*dynamodb.DeleteItemOutput)
		units := unitsOf(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity })
		return write("DeleteItem", units+failedUnits(err, 0), keyOwner(in.Key)), true
	case *dynamodb.TransactWriteItemsInput:
		out, _ := output.(*dynamodb.TransactWriteItemsOutput)
		units := transactionUnits(out) + cancelledUnits(err, in.TransactItems)
		o := write("TransactWriteItems", units, transactionOwner(in.TransactItems))
		o.count.Entries = float64(len(in.TransactItems))
		return o, true
	default:
		return observation{}, false
	}
}

func read(operation string, units float64, owners []owner) observation {
	return tableCall(operation, pricing.Usage{pricing.ReadUnits: units}, owners)
}

func write(operation string, units float64, owners []owner) observation {
	return tableCall(operation, pricing.Usage{pricing.WriteUnits: units}, owners)
}

func tableCall(operation string, usage pricing.Usage, owners []owner) observation {
	return observation{
		kind: Kind{Call: "DynamoDB." + operation}, count: Count{Entries: 1, Usage: usage}, owners: owners,
	}
}

// unitsOf returns the reported capacity of a call. It is 0 if the call failed or the service does not report it.
func unitsOf[Out any](out *Out, capacity func() *types.ConsumedCapacity) float64 {
	if out == nil {
		return 0
	}
	return capacityUnits(capacity())
}

func transactionUnits(out *dynamodb.TransactWriteItemsOutput) (sum float64) {
	if out == nil {
		return 0
	}
	for i := range out.ConsumedCapacity {
		sum += capacityUnits(&out.ConsumedCapacity[i])
	}
	return sum
}

func capacityUnits(c *types.ConsumedCapacity) float64 {
	if c == nil || c.CapacityUnits == nil {
		return 0
	}
	return *c.CapacityUnits
}

// failedUnits returns the units of a write whose condition failed. AWS bills the larger of the two items, but does not
// report that with the error.
func failedUnits(err error, bytes int) float64 {
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return 0
	}
	return writeUnits(max(bytes, itemBytes(refused.Item)))
}

// cancelledUnits returns the units of a cancelled transaction. AWS bills it like a successful one.
func cancelledUnits(err error, writes []types.TransactWriteItem) (sum float64) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return 0
	}
	for i := range writes {
		bytes := 0
		if put := writes[i].Put; put != nil {
			bytes = itemBytes(put.Item)
		}
		if i < len(cancelled.CancellationReasons) {
			bytes = max(bytes, itemBytes(cancelled.CancellationReasons[i].Item))
		}
		sum += 2 * writeUnits(bytes) //nolint:mnd // prepared and committed
	}
	return sum
}

// writeUnitBytes is the size of one write unit.
const writeUnitBytes = 1 << 10

func writeUnits(bytes int) float64 {
	return float64(max(1, (bytes+writeUnitBytes-1)/writeUnitBytes))
}

// itemBytes returns the size of an item in bytes, including its names, by the rules of DynamoDB.
func itemBytes(it map[string]types.AttributeValue) (n int) {
	for name, v := range it {
		n += len(name) + valueBytes(v)
	}
	return n
}

func valueBytes(v types.AttributeValue) (n int) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 1
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			n += len(s)
		}
	}
	return n
}
