package instances

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// BlockInstance writes only the instance item, because a segment requires a readable history.
func (is *Store) BlockInstance(
	ctx context.Context, instanceID, executionID, buildID string, why *history.Failure,
) error {
	const set, forget = "SET #updated = :updated, #status = :status", " REMOVE attention, blockedBy, diagnosis, paused"
	in := &dynamodb.UpdateItemInput{
		Key:                 table.InstanceKey(instanceID),
		UpdateExpression:    aws.String(set + forget),
		ConditionExpression: aws.String("#x = :x AND #status IN (:pending, :running, :cancelling, :blocked)"),
		ExpressionAttributeNames: map[string]string{
			"#updated":       "updated",
			table.NameStatus: table.AttrStatus,
			"#x":             "execution",
		},
		ExpressionAttributeValues: table.Item{
			":updated":    table.Str(table.FormatTime(is.now())),
			":x":          table.Str(executionID),
			":status":     table.Str(string(provider.StatusRunning)),
			":pending":    table.Str(string(provider.StatusPending)),
			":running":    table.Str(string(provider.StatusRunning)),
			":cancelling": table.Str(string(provider.StatusCancelling)),
			":blocked":    table.Str(string(provider.StatusBlocked)),
		},
	}
	if why != nil {
		diagnosis, err := json.Marshal(why)
		if err != nil {
			return fmt.Errorf("dynamo: instance %q: diagnosis: %w", instanceID, err)
		}
		in.UpdateExpression = aws.String(
			set + ", attention = :attention, blockedBy = :blockedBy, diagnosis = :diagnosis REMOVE paused",
		)
		in.ConditionExpression = aws.String(
			"#x = :x AND #status IN (:pending, :running, :cancelling, :blocked, :paused)",
		)
		in.ExpressionAttributeValues[":paused"] = table.Str(string(provider.StatusPaused))
		in.ExpressionAttributeValues[":status"] = table.Str(string(provider.StatusBlocked))
		in.ExpressionAttributeValues[":attention"] = table.Str(BlockedPartition(instanceID))
		in.ExpressionAttributeValues[":blockedBy"] = table.Str(buildID)
		in.ExpressionAttributeValues[":diagnosis"] = table.Str(string(diagnosis))
	}
	_, _, err := is.table.UpdateIf(ctx, instanceID, in)
	return err
}
