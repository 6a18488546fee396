package activityrecords

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

const valueAttempt = ":attempt"

// HeartbeatPending updates the activity record, on condition that the attempt may still be open.
func (as *Store) HeartbeatPending(
	ctx context.Context, executionID string, b provider.PendingHeartbeat,
) (counted bool, err error) {
	set := "SET #beatenAt = :beat, #beatOf = :attempt"
	in := &dynamodb.UpdateItemInput{
		Key:                      table.ExecutionKey(executionID, table.ActivitySK(b.ActivityID)),
		ExpressionAttributeNames: table.Names(attrHeartbeatAt, attrHeartbeatOf, attrEndedOf),
		ExpressionAttributeValues: table.Item{
			":beat": table.Str(table.FormatTime(b.At)), valueAttempt: table.Num(int64(b.Attempt)),
		},
		// The time of another attempt is from the clock of another holder, so it is not comparable.
		ConditionExpression: aws.String(
			"(attribute_not_exists(#beatenAt) OR attribute_not_exists(#beatOf) OR #beatOf < :attempt OR" +
				" #beatOf = :attempt AND #beatenAt <= :beat) AND (attribute_not_exists(#overOf) OR #overOf < :attempt)",
		),
	}
	if len(b.Details) > 0 {
		set += ", #details = :details"
		in.ExpressionAttributeNames["#details"] = attrDetails
		in.ExpressionAttributeValues[":details"] = table.Str(string(b.Details))
	}
	if b.Cancelled {
		set += ", #seenAt = if_not_exists(#seenAt, :beat)"
		in.ExpressionAttributeNames["#seenAt"] = attrCancelSeenAt
	}
	in.UpdateExpression = &set
	counted, err = as.putRecord(ctx, executionID, b.ActivityID, in)
	return counted, wrapError(executionID, b.ActivityID, err)
}

// EndPending updates the activity record, on condition that the stored heartbeat is the one that the caller has
// read.
func (as *Store) EndPending(
	ctx context.Context, executionID string, activityID int64, attempt int, lastHeartbeatAt time.Time,
) (ended bool, err error) {
	in := &dynamodb.UpdateItemInput{
		Key:                       table.ExecutionKey(executionID, table.ActivitySK(activityID)),
		UpdateExpression:          aws.String("SET #overOf = :attempt"),
		ExpressionAttributeNames:  table.Names(attrHeartbeatAt, attrEndedOf),
		ExpressionAttributeValues: table.Item{valueAttempt: table.Num(int64(attempt))},
		ConditionExpression:       aws.String("#overOf = :attempt OR attribute_not_exists(#beatenAt)"),
	}
	if !lastHeartbeatAt.IsZero() {
		in.ConditionExpression = aws.String("#overOf = :attempt OR #beatenAt = :beatenAt")
		in.ExpressionAttributeValues[":beatenAt"] = table.Str(table.FormatTime(lastHeartbeatAt))
	}
	ended, err = as.putRecord(ctx, executionID, activityID, in)
	return ended, wrapError(executionID, activityID, err)
}
