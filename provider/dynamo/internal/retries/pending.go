package retries

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// PutPendingAttempts writes the attempt records of activities, on condition that the head is unchanged, and then sends
// the timers.
func (rt *Retries) PutPendingAttempts(
	ctx context.Context, instanceID string, head provider.Head, keeps ...provider.PendingAttemptUpdate,
) error {
	c := &request{retries: rt, RetryRequest: &provider.RetryRequest{InstanceID: instanceID, Head: head}}
	var writes []types.TransactWriteItem
	for i := range keeps {
		if keeps[i].Sent {
			continue
		}
		u, err := c.pendingUpdate(&keeps[i])
		if err != nil {
			return err
		}
		writes = append(writes, types.TransactWriteItem{Update: u})
	}
	for some := range slices.Chunk(writes, table.MaxTransactionItems-1) {
		batch := append([]types.TransactWriteItem{{ConditionCheck: c.headCondition()}}, some...)
		if err := rt.Table.Transact(ctx, instanceID, batch); err != nil {
			return c.conflict(err)
		}
	}

	var out outputs.Set
	for i := range keeps {
		k := &keeps[i]
		if k.NextCheckAt.IsZero() {
			continue
		}
		out.Timers = append(out.Timers, provider.Timer{
			V:                   provider.WireVersion,
			InstanceID:          instanceID,
			ExecutionID:         head.ExecutionID,
			Segment:             k.Pending.Segment,
			TimerID:             k.ActivityID,
			FireAt:              k.NextCheckAt,
			Attempt:             k.Attempt,
			WaitForCancellation: k.Pending.WaitForCancellation,
		})
	}
	refused, err := rt.Outbox.SendOutputs(ctx, &out)
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("dynamo: instance %q: %d timers of pending activities were rejected: %s", instanceID,
			len(refused), refused[0].Failure.Message)
	}
	return err
}

// pendingUpdate returns the update that replaces the value that was read by a pending attempt.
func (c *request) pendingUpdate(k *provider.PendingAttemptUpdate) (*types.Update, error) {
	doc, err := json.Marshal(k.Pending)
	if err != nil {
		return nil, fmt.Errorf("dynamo: encode pending attempt: %w", err)
	}
	since := table.FormatTime(k.Pending.Since)
	set := "SET #attempt = :attempt, #pending = :pending, #pendingOf = :attempt, #lookBy = :by, " +
		"#at = if_not_exists(#at, :since), " +
		"#failedAt = if_not_exists(#failedAt, :since), #error = if_not_exists(#error, :none)"
	u := &types.Update{
		Key: table.AttemptKey(c.Head.ExecutionID, k.ActivityID),
		ExpressionAttributeNames: table.Names(
			activityrecords.AttrAttempt, activityrecords.AttrPending, activityrecords.AttrPendingOf,
			activityrecords.AttrNextCheckID, activityrecords.AttrNextCheckAt, activityrecords.AttrAt,
			activityrecords.AttrFailedAt, activityrecords.AttrError,
		),
		ExpressionAttributeValues: table.Item{
			":attempt": table.Num(int64(k.Attempt)),
			":pending": table.Str(string(doc)),
			":by":      table.Str(k.NextCheckID),
			":since":   table.Str(since),
			":none":    table.Str("{}"),
		},
	}
	if k.NextCheckAt.IsZero() {
		u.UpdateExpression = aws.String(set + " REMOVE #lookAt")
	} else {
		u.UpdateExpression = aws.String(set + ", #lookAt = :lookAt")
		u.ExpressionAttributeValues[":lookAt"] = table.Str(table.FormatTime(k.NextCheckAt))
	}

	switch was := &k.Was; {
	case was.Attempt == 0:
		u.ConditionExpression = aws.String("attribute_not_exists(#attempt)")
	case was.NextCheckID == "":
		u.ConditionExpression = aws.String("#attempt = :was AND attribute_not_exists(#lookBy)")
		u.ExpressionAttributeValues[":was"] = table.Num(int64(was.Attempt))
	default:
		u.ConditionExpression = aws.String("#attempt = :was AND #lookBy = :wasBy")
		u.ExpressionAttributeValues[":was"] = table.Num(int64(was.Attempt))
		u.ExpressionAttributeValues[":wasBy"] = table.Str(was.NextCheckID)
	}
	return u, nil
}
