package cancels

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// FindMark finds c among an execution's items. readable is false if c has parts or is damaged.
func FindMark(executionID string, items []table.Item) (cancels provider.Cancels, readable bool) {
	for _, it := range items {
		if table.GetString(it, table.AttrSK) != table.SKCancelMark {
			continue
		}
		if table.GetNumber(it, table.AttrParts) > 0 || !json.Valid([]byte(table.GetString(it, AttrCancels))) {
			return nil, false
		}
		cancels, err := decode(executionID, table.SKCancelMark, []byte(table.GetString(it, AttrCancels)))
		return cancels, err == nil
	}
	return nil, true
}

// MarkItems returns the items that mark the cancel record of a deleted instance. The decisions of turns stay. An
// unreadable record of the previous release is replaced.
func (cs *Store) MarkItems(ctx context.Context, executionID string, now time.Time) ([]table.Item, error) {
	before, err := cs.ReadMark(ctx, executionID)
	if err != nil && !errors.Is(err, provider.ErrCorrupt) {
		return nil, err
	}
	return EncodeMark(executionID, before.WithDeletion(now))
}

// ExpireUpdate returns the update that sets the TTL of a turn's decisions, which is the maximum lifetime of a message.
func (cs *Store) ExpireUpdate(executionID, sk string, ttl types.AttributeValue) *types.Update {
	return &types.Update{
		Key:                       table.ExecutionKey(executionID, sk),
		UpdateExpression:          aws.String("SET #ttl = :ttl"),
		ExpressionAttributeNames:  map[string]string{"#ttl": table.AttrTTL},
		ExpressionAttributeValues: table.Item{":ttl": ttl},
	}
}

// Expire makes that update separately.
func (cs *Store) Expire(ctx context.Context, instanceID, executionID, sk string) error {
	u := cs.ExpireUpdate(executionID, sk, table.Unix(cs.now().Add(table.TombstoneLifetime)))
	return cs.table.Update(ctx, instanceID, &dynamodb.UpdateItemInput{
		Key: u.Key, UpdateExpression: u.UpdateExpression,
		ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
	})
}

// MarkDeleted marks the cancel record of a deleted execution, with a TTL of the maximum lifetime of a message.
func (cs *Store) MarkDeleted(ctx context.Context, instanceID, executionID string) error {
	now := cs.now().UTC()
	record, err := cs.MarkItems(ctx, executionID, now)
	if err != nil {
		return err
	}
	ttl := table.Unix(now.Add(table.TombstoneLifetime))
	for _, it := range record {
		it[table.AttrTTL] = ttl
	}
	if len(record) == 1 {
		return cs.table.PutItem(ctx, instanceID, record[0])
	}
	return cs.table.Transact(ctx, instanceID, table.Puts(record))
}
