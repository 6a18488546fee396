package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The names and values that several expressions use.
const (
	nameAt       = "#at"
	nameAttempt  = "#attempt"
	valueAttempt = ":attempt"
)

// PutPendingAttempts writes the attempt records of activities, on condition that the head is unchanged, and then sends
// the timers.
func (p *Provider) PutPendingAttempts(ctx context.Context, instanceID string, head provider.Head, keeps ...provider.PendingAttemptUpdate) error {
	c := &retrying{p: p, RetryRequest: &provider.RetryRequest{InstanceID: instanceID, Head: head}}
	var writes []types.TransactWriteItem
	for i := range keeps {
		if keeps[i].Sent {
			continue
		}
		u, err := c.keepPending(&keeps[i])
		if err != nil {
			return err
		}
		writes = append(writes, types.TransactWriteItem{Update: u})
	}
	for len(writes) > 0 {
		n := min(len(writes), table.MaxTransactionItems-1)
		batch := append([]types.TransactWriteItem{{ConditionCheck: c.fence()}}, writes[:n]...)
		if err := p.table.Transact(ctx, instanceID, batch); err != nil {
			return c.conflict(err)
		}
		writes = writes[n:]
	}

	var out provider.Outputs
	for i := range keeps {
		k := &keeps[i]
		if k.NextCheckAt.IsZero() {
			continue
		}
		out.Timers = append(out.Timers, provider.Timer{
			V: provider.WireVersion, InstanceID: instanceID, ExecutionID: head.ExecutionID, Segment: k.Pending.Segment,
			TimerID: k.ActivityID, FireAt: k.NextCheckAt, Attempt: k.Attempt, WaitForCancellation: k.Pending.WaitForCancellation,
		})
	}
	refused, err := p.sendOutputs(ctx, &out)
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("dynamo: instance %q: %d timers of pending activities were rejected: %s", instanceID,
			len(refused), refused[0].Failure.Message)
	}
	return err
}

// keepPending returns the update that stores a pending attempt in place of the value that was read.
func (c *retrying) keepPending(k *provider.PendingAttemptUpdate) (*types.Update, error) {
	doc, err := json.Marshal(k.Pending)
	if err != nil {
		return nil, fmt.Errorf("dynamo: encode pending attempt: %w", err)
	}
	since := table.FormatTime(k.Pending.Since)
	set := "SET #attempt = :attempt, #pending = :pending, #pendingOf = :attempt, #lookBy = :by, #at = if_not_exists(#at, :since), " +
		"#failedAt = if_not_exists(#failedAt, :since), #error = if_not_exists(#error, :none)"
	u := &types.Update{
		Key: table.AttemptKey(c.Head.ExecutionID, k.ActivityID),
		ExpressionAttributeNames: map[string]string{
			nameAttempt: attrAttempt, "#pending": attrPending, "#pendingOf": attrPendingOf, "#lookBy": attrLookBy, "#lookAt": attrLookAt,
			nameAt: attrAt, "#failedAt": attrFailedAt, "#error": attrError,
		},
		ExpressionAttributeValues: table.Item{
			valueAttempt: table.Num(int64(k.Attempt)), ":pending": table.Str(string(doc)), ":by": table.Str(k.NextCheckID), ":since": table.Str(since), ":none": table.Str("{}"),
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

// HeartbeatPending updates the activity record, on condition that the attempt may still be open.
func (p *Provider) HeartbeatPending(ctx context.Context, executionID string, b provider.PendingHeartbeat) (counted bool, err error) {
	set := "SET #beatenAt = :beat, #beatOf = :attempt"
	in := &dynamodb.UpdateItemInput{
		Key:                       table.ExecutionKey(executionID, table.ActivitySK(b.ActivityID)),
		ExpressionAttributeNames:  map[string]string{"#beatenAt": attrBeatenAt, "#beatOf": attrBeatOf, "#overOf": attrOverOf},
		ExpressionAttributeValues: table.Item{":beat": table.Str(table.FormatTime(b.At)), valueAttempt: table.Num(int64(b.Attempt))},
		// A time of another attempt is from another holder's clock, and is not comparable.
		ConditionExpression: aws.String("(attribute_not_exists(#beatenAt) OR attribute_not_exists(#beatOf) OR #beatOf < :attempt OR" +
			" #beatOf = :attempt AND #beatenAt <= :beat) AND (attribute_not_exists(#overOf) OR #overOf < :attempt)"),
	}
	if len(b.Details) > 0 {
		set += ", #details = :details"
		in.ExpressionAttributeNames["#details"] = attrDetails
		in.ExpressionAttributeValues[":details"] = table.Str(string(b.Details))
	}
	if b.Cancelled {
		set += ", #seenAt = if_not_exists(#seenAt, :beat)"
		in.ExpressionAttributeNames["#seenAt"] = attrSeenAt
	}
	in.UpdateExpression = &set
	counted, err = p.putRecord(ctx, executionID, b.ActivityID, in)
	return counted, ofActivity(executionID, b.ActivityID, err)
}

// TimeOutPending updates the activity record, on condition that the stored heartbeat is the one that the caller has
// seen.
func (p *Provider) TimeOutPending(ctx context.Context, executionID string, activityID int64, attempt int, beatenAt time.Time) (ended bool, err error) {
	in := &dynamodb.UpdateItemInput{
		Key:                       table.ExecutionKey(executionID, table.ActivitySK(activityID)),
		UpdateExpression:          aws.String("SET #overOf = :attempt"),
		ExpressionAttributeNames:  map[string]string{"#beatenAt": attrBeatenAt, "#overOf": attrOverOf},
		ExpressionAttributeValues: table.Item{valueAttempt: table.Num(int64(attempt))},
		ConditionExpression:       aws.String("#overOf = :attempt OR attribute_not_exists(#beatenAt)"),
	}
	if !beatenAt.IsZero() {
		in.ConditionExpression = aws.String("#overOf = :attempt OR #beatenAt = :beatenAt")
		in.ExpressionAttributeValues[":beatenAt"] = table.Str(table.FormatTime(beatenAt))
	}
	ended, err = p.putRecord(ctx, executionID, activityID, in)
	return ended, ofActivity(executionID, activityID, err)
}
