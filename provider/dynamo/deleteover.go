package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// mostErased is the maximum number of an execution's items that are erased in one transaction of up to 100 writes.
const mostErased = 90

// deleteOver deletes an ended instance. A small instance, which is the usual case, is deleted in one transaction, and a
// large one step by step.
func (p *Provider) deleteOver(ctx context.Context, it table.Item) error {
	id := table.GetString(it, table.AttrPK)[len(table.IDPrefix):]
	payloads, err := p.payloads.Has(ctx, table.GetString(it, table.AttrExecution))
	if err != nil {
		return err
	}
	// otherwise there are items to erase, and another call must be able to continue the deletion
	if it[table.AttrHasUpdateResults] == nil && !payloads {
		if done, err := p.deleteAtOnce(ctx, id, it); done || err != nil {
			return err
		}
	}
	return unlessNone(p.deleteLife(ctx, id, table.GetString(it, table.AttrStartID), false))
}

// unlessNone returns err unless it is ErrNotFound.
func unlessNone(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// deleteAtOnce makes a whole deletion in one transaction (R17). It needs no terminal segment, because the end is
// committed. It sends nothing, because a terminal status is written only after all outputs were accepted (R9). It
// supports instances with one execution, few items and no large payloads. For other instances, and if the instance has
// changed since it was read, it does nothing.
func (p *Provider) deleteAtOnce(ctx context.Context, instanceID string, it table.Item) (done bool, err error) {
	executionID := table.GetString(it, table.AttrExecution)
	all := segments.KeysOnly(segments.AllItemsQuery(executionID))
	all.ProjectionExpression = aws.String(*all.ProjectionExpression + ", #cancels, #parts")
	all.ExpressionAttributeNames["#cancels"] = cancels.AttrCancels
	all.ExpressionAttributeNames["#parts"] = table.AttrParts
	all.Limit = aws.Int32(mostErased + 1)
	items, err := p.table.QueryPage(ctx, instanceID, all)
	if err != nil || all.ExclusiveStartKey != nil || len(items) > mostErased {
		return false, err
	}

	rest := remainsOf(items)
	decisions, readable := cancels.FindMark(executionID, items)
	if rest.previous != "" || !readable {
		return false, nil
	}

	now := p.now().UTC()
	record, err := cancels.EncodeMark(executionID, decisions.WithDeletion(now))
	if err != nil || len(record) != 1 {
		return false, nil //nolint:nilerr // too large: delete step by step
	}

	ttl := table.Unix(now.Add(table.TombstoneLifetime))
	record[0][table.AttrTTL] = ttl
	for sequence := range rest.last + 1 {
		record = append(record, segments.Stub(executionID, sequence, p.now()))
	}

	writes := append([]types.TransactWriteItem{{Put: p.tombstoneAtOnce(it, rest.watermark, purger(ctx))}}, table.Puts(record)...)
	for _, sk := range rest.decided {
		writes = append(writes, types.TransactWriteItem{Update: p.cancels.ExpireUpdate(executionID, sk, ttl)})
	}
	for _, sk := range rest.others {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
			Key: table.ExecutionKey(executionID, sk),
		}})
	}
	if len(writes) > 100 { //nolint:mnd // DynamoDB's limit: a damaged history may lack many segments
		return false, nil
	}

	switch err := p.table.Transact(ctx, instanceID, writes); {
	case err == nil:
		return true, nil
	case table.ConditionFailed(err):
		return false, nil
	default:
		return false, err
	}
}

// tombstoneAtOnce returns the write that replaces an instance by a tombstone, on condition that the instance has not
// changed.
func (p *Provider) tombstoneAtOnce(it table.Item, watermark provider.Position, purgedBy string) *types.Put {
	put := &types.Put{
		Item:                     p.instances.Tombstone(it),
		ExpressionAttributeNames: map[string]string{"#was": table.AttrStatus, table.NameRejectedCount: table.AttrRejectedCount},
		ExpressionAttributeValues: table.Item{
			":x": it[table.AttrExecution], ":was": it[table.AttrStatus], ":start": it[table.AttrStartID],
		},
	}
	condition := "execution = :x AND #was = :was AND startId = :start AND attribute_not_exists(deleting) AND attribute_not_exists(answered) AND "
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
