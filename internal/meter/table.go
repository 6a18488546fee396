package meter

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/pricing"
)

// ofTable reads a call to DynamoDB.
func ofTable(input, output any, err error) (observed, bool) {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		out, _ := output.(*dynamodb.GetItemOutput)
		return read("GetItem", one(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity }), keyOwner(in.Key)), true
	case *dynamodb.QueryInput:
		out, _ := output.(*dynamodb.QueryOutput)
		return read("Query", one(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity }), valueOwners(in.ExpressionAttributeValues)), true
	case *dynamodb.PutItemInput:
		out, _ := output.(*dynamodb.PutItemOutput)
		return write("PutItem", one(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity }), failedUnits(err, itemBytes(in.Item)), itemOwner(in.Item)), true
	case *dynamodb.UpdateItemInput:
		out, _ := output.(*dynamodb.UpdateItemOutput)
		return write("UpdateItem", one(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity }), failedUnits(err, 0), keyOwner(in.Key)), true
	case *dynamodb.DeleteItemInput:
		out, _ := output.(*dynamodb.DeleteItemOutput)
		return write("DeleteItem", one(out, func() *types.ConsumedCapacity { return out.ConsumedCapacity }), failedUnits(err, 0), keyOwner(in.Key)), true
	case *dynamodb.TransactWriteItemsInput:
		out, _ := output.(*dynamodb.TransactWriteItemsOutput)
		o := write("TransactWriteItems", all(out), cancelledUnits(err, in.TransactItems), transactionOwner(in.TransactItems))
		o.count.Entries = float64(len(in.TransactItems))
		return o, true
	default:
		return observed{}, false
	}
}

func read(operation string, units float64, whose []owner) observed {
	return observed{kind: Kind{Call: "DynamoDB." + operation}, count: Count{Entries: 1, Usage: pricing.Usage{pricing.ReadUnits: units}}, whose: whose}
}

func write(operation string, units, failed float64, whose []owner) observed {
	return observed{kind: Kind{Call: "DynamoDB." + operation}, count: Count{Entries: 1, Usage: pricing.Usage{pricing.WriteUnits: units + failed}}, whose: whose}
}

// one is what a call says that it consumed: nothing where it failed, or the service does not say it.
func one[Out any](out *Out, capacity func() *types.ConsumedCapacity) float64 {
	if out == nil {
		return 0
	}
	return unitsOf(capacity())
}

func all(out *dynamodb.TransactWriteItemsOutput) (sum float64) {
	if out == nil {
		return 0
	}
	for i := range out.ConsumedCapacity {
		sum += unitsOf(&out.ConsumedCapacity[i])
	}
	return sum
}

func unitsOf(c *types.ConsumedCapacity) float64 {
	if c == nil || c.CapacityUnits == nil {
		return 0
	}
	return *c.CapacityUnits
}

// failedUnits is what a write costs whose condition failed: as if it had written the larger of the two items. AWS does not say it with the error.
func failedUnits(err error, bytes int) float64 {
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return 0
	}
	return writeUnits(max(bytes, itemBytes(refused.Item)))
}

// cancelledUnits is what a cancelled transaction costs: each of its items twice, as if it had been written.
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

// writeUnitBytes is what one write unit pays for.
const writeUnitBytes = 1 << 10

func writeUnits(bytes int) float64 {
	return float64(max(1, (bytes+writeUnitBytes-1)/writeUnitBytes))
}

// itemBytes is the size of an item of our kinds of attributes as DynamoDB counts it: names and values.
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
