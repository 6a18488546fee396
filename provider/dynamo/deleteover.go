package dynamo

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
)

// mostErased bounds the items of an execution that are erased in one transaction, which takes 100.
const mostErased = 90

// deleteOver deletes an instance that is over: at once if it is small, as nearly all are, and step by step otherwise.
func (p *Provider) deleteOver(ctx context.Context, it item) error {
	id := getString(it, attrPK)[len(idPrefix):]
	payloads, err := p.hasPayloads(ctx, getString(it, attrExecution))
	if err != nil {
		return err
	}
	if it[attrAnswered] == nil && !payloads { // else there are those to erase, and a deletion that dies in between is to be found, and repeated
		if done, err := p.deleteAtOnce(ctx, id, it); done || err != nil {
			return err
		}
	}
	return unlessNone(p.deleteLife(ctx, id, getString(it, attrStartID), false))
}

// unlessNone returns err, unless it reports that there is no such instance.
func unlessNone(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// deleteAtOnce makes a whole deletion in one transaction (R17). It needs no fence, since the end is committed, and
// sends nothing, since a status that says so is written only when everything else was accepted (R9). It serves
// instances of one execution with few items and no large payloads; for any other, and for one that has changed since it was read, it does
// nothing.
func (p *Provider) deleteAtOnce(ctx context.Context, instanceID string, it item) (done bool, err error) {
	executionID := getString(it, attrExecution)
	all := keysOf(everything(p.hub.Table, executionID))
	all.ProjectionExpression = aws.String(*all.ProjectionExpression + ", #cancels, #parts")
	all.ExpressionAttributeNames["#cancels"] = attrCancels
	all.ExpressionAttributeNames["#parts"] = attrParts
	all.Limit = aws.Int32(mostErased + 1)
	items, err := p.queryPage(ctx, instanceID, all)
	if err != nil || all.ExclusiveStartKey != nil || len(items) > mostErased {
		return false, err
	}

	rest := remainsOf(items)
	cancels, readable := sealOf(executionID, items)
	if rest.previous != "" || !readable {
		return false, nil
	}

	now := p.now().UTC()
	record, err := encodeSeal(executionID, cancels.WithDeletion(now))
	if err != nil || len(record) != 1 {
		return false, nil //nolint:nilerr // too large: delete step by step
	}

	ttl := unix(now.Add(tombstoneLife))
	record[0][attrTTL] = ttl
	for sequence := range rest.last + 1 {
		record = append(record, p.stub(executionID, sequence))
	}

	writes := append([]types.TransactWriteItem{{Put: p.tombstoneAtOnce(it, rest.watermark, purger(ctx))}}, p.puts(record)...)
	for _, sk := range rest.decided {
		writes = append(writes, types.TransactWriteItem{Update: p.lasting(executionID, sk, ttl)})
	}
	for _, sk := range rest.others {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
			TableName: &p.hub.Table, Key: item{attrPK: str(executionPK(executionID)), attrSK: str(sk)},
		}})
	}
	if len(writes) > 100 { //nolint:mnd // DynamoDB's limit: a damaged history may lack many segments
		return false, nil
	}

	switch err := p.transact(ctx, instanceID, writes); {
	case err == nil:
		return true, nil
	case conditionFailed(err):
		return false, nil
	default:
		return false, err
	}
}

// tombstoneAtOnce replaces an instance that has not changed since it was read.
func (p *Provider) tombstoneAtOnce(it item, watermark provider.Position, purgedBy string) *types.Put {
	put := &types.Put{
		TableName: &p.hub.Table, Item: p.tombstoneOf(it),
		ExpressionAttributeNames: map[string]string{"#was": attrStatus, nameRefused: attrRefused},
		ExpressionAttributeValues: item{
			":x": it[attrExecution], ":was": it[attrStatus], ":start": it[attrStartID],
		},
	}
	condition := "execution = :x AND #was = :was AND startId = :start AND attribute_not_exists(deleting) AND attribute_not_exists(answered) AND "
	if refused := it[attrRefused]; refused != nil {
		condition += "#refused = :refused"
		put.ExpressionAttributeValues[":refused"] = refused
	} else {
		condition += "attribute_not_exists(#refused)"
	}
	put.ConditionExpression = &condition

	if purgedBy != "" {
		put.Item[attrPurgedBy] = str(purgedBy)
	}
	if watermark != (provider.Position{}) {
		put.Item[attrInbox] = str(watermark.Inbox)
		put.Item[attrWM] = str(watermark.Sequence)
	}
	return put
}

// sealOf finds c among an execution's items; readable is false where c has parts, or is damaged.
func sealOf(executionID string, items []item) (cancels provider.Cancels, readable bool) {
	for _, it := range items {
		if getString(it, attrSK) != skCancels {
			continue
		}
		if getNumber(it, attrParts) > 0 || !json.Valid([]byte(getString(it, attrCancels))) {
			return nil, false
		}
		cancels, err := decodeCancels(executionID, skCancels, []byte(getString(it, attrCancels)))
		return cancels, err == nil
	}
	return nil, true
}
