package deletion

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/erasure"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// maxErasedAtOnce is the maximum number of an execution's items that are erased in one transaction of up to 100 writes.
const maxErasedAtOnce = 90

// DeleteEnded deletes an ended instance. It deletes a small instance, which is the usual case, in one transaction, and
// a large instance step by step.
func (dl *Deleter) DeleteEnded(ctx context.Context, it table.Item) error {
	id := table.InstanceIDOf(it)
	payloads, err := dl.Payloads.Has(ctx, table.GetString(it, table.AttrExecution))
	if err != nil {
		return err
	}
	// With update results or payloads, there is more to delete, and another call must be able to continue.
	if it[table.AttrHasUpdateResults] == nil && !payloads {
		if done, err := dl.deleteInOneTransaction(ctx, id, it); done || err != nil {
			return err
		}
	}
	return IgnoreNotFound(dl.deleteInSteps(ctx, id, table.GetString(it, table.AttrStartID), false))
}

// IgnoreNotFound returns err unless it is ErrNotFound.
func IgnoreNotFound(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// deleteInOneTransaction makes a whole deletion in one transaction (R17). It needs no terminal segment, because the end
// is committed. It sends nothing, because a terminal status is written only after all outputs were accepted (R9). It
// supports instances with one execution, few items and no large payloads. For other instances, and if the instance has
// changed since it was read, it does nothing.
func (dl *Deleter) deleteInOneTransaction(
	ctx context.Context, instanceID string, it table.Item,
) (done bool, err error) {
	executionID := table.GetString(it, table.AttrExecution)
	all := segments.KeysOnly(segments.AllItemsQuery(executionID))
	all.ProjectionExpression = aws.String(*all.ProjectionExpression + ", #cancels, #parts")
	all.ExpressionAttributeNames["#cancels"] = cancels.AttrCancels
	all.ExpressionAttributeNames["#parts"] = table.AttrParts
	all.Limit = aws.Int32(maxErasedAtOnce + 1)
	items, err := dl.Table.QueryPage(ctx, instanceID, all)
	if err != nil || all.ExclusiveStartKey != nil || len(items) > maxErasedAtOnce {
		return false, err
	}

	rest := erasure.Summarize(items)
	decisions, readable := cancels.FindMark(executionID, items)
	if rest.Previous != "" || !readable {
		return false, nil
	}

	now := dl.now().UTC()
	record, err := cancels.EncodeMark(executionID, decisions.WithDeletion(now))
	if err != nil || len(record) != 1 {
		return false, nil //nolint:nilerr // too large: delete step by step
	}

	ttl := table.Unix(now.Add(table.TombstoneLifetime))
	record[0][table.AttrTTL] = ttl
	for sequence := range rest.Last + 1 {
		record = append(record, segments.Stub(executionID, sequence, dl.now()))
	}

	writes := append(
		[]types.TransactWriteItem{{Put: dl.tombstonePut(it, rest.Watermark, requesterOf(ctx))}},
		table.Puts(record)...)
	for _, sk := range rest.Decided {
		writes = append(writes, types.TransactWriteItem{Update: dl.Cancels.ExpireUpdate(executionID, sk, ttl)})
	}
	for _, sk := range rest.Others {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
			Key: table.ExecutionKey(executionID, sk),
		}})
	}
	if len(writes) > 100 { //nolint:mnd // DynamoDB's limit; a damaged history may lack many segments
		return false, nil
	}

	switch err := dl.Table.Transact(ctx, instanceID, writes); {
	case err == nil:
		return true, nil
	case table.ConditionFailed(err):
		return false, nil
	default:
		return false, err
	}
}

// tombstonePut returns the write that replaces an instance by a tombstone, on condition that the instance has not
// changed.
func (dl *Deleter) tombstonePut(it table.Item, watermark provider.Position, purgedBy string) *types.Put {
	put := &types.Put{
		Item:                     dl.Instances.Tombstone(it),
		ExpressionAttributeNames: table.Names(table.AttrStatus, table.AttrRejectedCount),
		ExpressionAttributeValues: table.Item{
			":x": it[table.AttrExecution], ":was": it[table.AttrStatus], ":start": it[table.AttrStartID],
		},
	}
	condition := "execution = :x AND #status = :was AND startId = :start AND attribute_not_exists(deleting) " +
		"AND attribute_not_exists(answered) AND "
	if refused := it[table.AttrRejectedCount]; refused != nil {
		condition += "#refused = :refused"
		put.ExpressionAttributeValues[":refused"] = refused
	} else {
		condition += "attribute_not_exists(#refused)"
	}
	put.ConditionExpression = &condition

	if purgedBy != "" {
		put.Item[table.AttrPurgedBy] = table.Str(purgedBy)
	}
	if watermark != (provider.Position{}) {
		put.Item[table.AttrInbox] = table.Str(watermark.Inbox)
		put.Item[table.AttrWM] = table.Str(watermark.Sequence)
	}
	return put
}

// DeleteIncarnation deletes the incarnation that a start created. If it has ended and is small, a single transaction
// deletes it.
func (dl *Deleter) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error {
	it, err := dl.Instances.Get(ctx, instanceID, provider.Strong)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case table.GetString(it, table.AttrStartID) == startID && !instances.IsDeleting(it) &&
		provider.RuntimeStatus(table.GetString(it, table.AttrStatus)).Terminal():
		return dl.DeleteEnded(ctx, it)
	}
	return IgnoreNotFound(dl.deleteInSteps(ctx, instanceID, startID, force))
}
