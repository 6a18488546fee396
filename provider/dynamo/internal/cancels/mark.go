package cancels

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
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

// MarkItems returns the items that mark the cancel record of a deleted instance. The decisions of turns are not
// deleted. MarkItems replaces an unreadable record of the previous release.
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
		ExpressionAttributeNames:  table.Names(table.AttrTTL),
		ExpressionAttributeValues: table.Item{":ttl": ttl},
	}
}

// Expire makes the update of ExpireUpdate separately.
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

// DeleteUncommitted deletes cancel decisions of turns that an execution's history does not contain. In a table that was
// copied item by item, the cancel decisions of a turn can exist without its segment. Workers would skip these
// activities, and no turn would record their cancellation.
func (cs *Store) DeleteUncommitted(ctx context.Context, o *provider.Orchestration, settled func(int64) bool) error {
	if !awaitsActivity(o, settled) {
		return nil
	}
	in := table.RangeQuery(
		table.ExecutionPK(o.Head.ExecutionID), table.CancelDecisionsSK(o.Head.Segment+1), table.SKCancelDecisions+"~",
		provider.Strong,
	)
	in.ProjectionExpression = aws.String(table.AttrPK + ", " + table.AttrSK)
	items, err := cs.table.QueryAll(ctx, o.InstanceID, in)
	if err != nil {
		return err
	}

	of := map[int64][]table.Item{}
	for _, it := range items {
		sequence := table.SequenceOf(it, table.SKCancelDecisions)
		of[sequence] = append(of[sequence], it)
	}
	for sequence, record := range of {
		if err := cs.deleteTurn(ctx, o, sequence, record); err != nil {
			return err
		}
	}
	return nil
}

// deleteTurn deletes the cancel decisions of a turn, unless the turn has been committed.
func (cs *Store) deleteTurn(ctx context.Context, o *provider.Orchestration, sequence int64, record []table.Item) error {
	key := func(sk string) table.Item {
		return table.ExecutionKey(o.Head.ExecutionID, sk)
	}
	writes := []types.TransactWriteItem{ // the first write is only the condition
		{
			Delete: &types.Delete{
				Key:                 key(table.SegmentSK(sequence, 0)),
				ConditionExpression: aws.String(table.NotExists),
			},
		},
		{Delete: &types.Delete{Key: key(table.CancelBlockSK(sequence))}},
	}
	for _, it := range record {
		writes = append(
			writes, types.TransactWriteItem{Delete: &types.Delete{Key: key(table.GetString(it, table.AttrSK))}},
		)
	}
	if err := cs.table.Transact(ctx, o.InstanceID, writes); err != nil && !table.ConditionFailed(err) {
		return err
	}
	return nil
}

// awaitsActivity reports whether an execution waits for an activity.
func awaitsActivity(o *provider.Orchestration, settled func(int64) bool) bool {
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			if e := &o.Segments[i].Events[j]; e.Kind == history.ActivityScheduled && !settled(e.ID) {
				return true
			}
		}
	}
	return false
}
