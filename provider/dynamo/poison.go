package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// skMarks is the prefix of the crash markers of an execution: p#<activity, or 0>#<message id>.
const skMarks = "p#"

// The attributes of a crash marker.
const (
	attrBegun    = "begun"    // deliveries that started and were not unmarked
	attrDelivery = "delivery" // the latest one
)

func markKey(a *provider.Attempt) item {
	return item{
		attrPK: str(executionPK(a.ExecutionID)),
		// The key contains the message, because an activity can have two messages with separate counts, and each turn
		// has another first message.
		attrSK: str(fmt.Sprintf("%s%d#%s", skMarks, a.ActivityID, a.Record.ID)),
	}
}

// PutCrashMarker counts started deliveries, on condition that this delivery was not counted. A repetition after a lost
// response therefore counts nothing, and neither does a function that was frozen while a later delivery started. An
// attempt that is Batched counts only if there is no other marker.
func (p *Provider) PutCrashMarker(ctx context.Context, a provider.Attempt) (died int, err error) {
	now := p.now()
	condition := "attribute_not_exists(#delivery) OR #delivery < :delivery"
	values := item{
		":delivery": num(int64(a.Record.ReceiveCount)), ":begun": num(1), ":at": str(formatTime(now)), ":gone": unix(now.Add(tombstoneLife)),
	}
	if a.Batched {
		condition += " AND #begun = :none"
		values[":none"] = num(0)
	}

	in := &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: markKey(&a),
		UpdateExpression:                    aws.String("SET #delivery = :delivery, #at = :at, #gone = :gone ADD #begun :begun"),
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            map[string]string{"#delivery": attrDelivery, nameAt: "at", "#gone": attrTTL, "#begun": attrBegun},
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var mark item
	err = call(ctx, "DynamoDB.UpdateItem", "", func() error {
		out, err := p.table.UpdateItem(ctx, in)
		if err == nil {
			mark = out.Attributes
		}
		return err
	})
	if err != nil {
		counted, refused := refusedItem(err, 0)
		if !refused {
			return 0, err
		}
		mark = counted
		if a.Batched && int(getNumber(mark, attrDelivery)) != a.Record.ReceiveCount {
			return int(getNumber(mark, attrBegun)), nil // none of the counted deliveries is this one
		}
	}
	return max(0, int(getNumber(mark, attrBegun))-1), nil
}

// DeleteCrashMarker sets the count to zero and leaves the item to its TTL, because functions have no permission to
// delete it. If a later delivery has started, for example because the lock expired in between, that delivery stays
// counted, or stays unmarked if it was unmarked too. An attempt that has Progressed keeps its own marker and removes
// the others.
func (p *Provider) DeleteCrashMarker(ctx context.Context, a provider.Attempt) error {
	left := int64(0)
	until := p.now()
	if a.Progressed {
		left = 1
		until = until.Add(tombstoneLife)
	}

	unmarked, err := p.countAttempts(ctx, &a, "#delivery = :delivery", left, until)
	if err == nil && !unmarked {
		_, err = p.countAttempts(ctx, &a, "#delivery > :delivery AND #begun > :begun", 1, p.now().Add(tombstoneLife))
	}
	return err
}

// countAttempts sets the count of a crash marker, if the latest marked delivery meets the condition.
func (p *Provider) countAttempts(ctx context.Context, a *provider.Attempt, condition string, begun int64, until time.Time) (counted bool, err error) {
	return p.updateIf(ctx, "", &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: markKey(a),
		UpdateExpression:          aws.String("SET #begun = :begun, #gone = :gone"),
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  map[string]string{"#delivery": attrDelivery, "#gone": attrTTL, "#begun": attrBegun},
		ExpressionAttributeValues: item{":delivery": num(int64(a.Record.ReceiveCount)), ":begun": num(begun), ":gone": unix(until)},
	})
}

// updateIf updates an item. It does nothing if the condition fails.
func (p *Provider) updateIf(ctx context.Context, instanceID string, in *dynamodb.UpdateItemInput) (updated bool, err error) {
	err = call(ctx, "DynamoDB.UpdateItem", instanceID, func() error {
		_, err := p.table.UpdateItem(ctx, in)
		return err
	})
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return false, nil
	}
	return err == nil, err
}

// unix returns a time as a TTL.
func unix(t time.Time) types.AttributeValue { return num(t.Unix()) }

// BlockInstance writes only the instance item, because a segment requires a readable history.
func (p *Provider) BlockInstance(ctx context.Context, instanceID, executionID, buildID string, why *history.Failure) error {
	const set, forget = "SET #updated = :updated, #status = :status", " REMOVE attention, blockedBy, diagnosis, paused"
	in := &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: instanceKey(instanceID),
		UpdateExpression:         aws.String(set + forget),
		ConditionExpression:      aws.String("#x = :x AND #status IN (:pending, :running, :cancelling, :blocked)"),
		ExpressionAttributeNames: map[string]string{"#updated": "updated", nameStatus: attrStatus, "#x": "execution"},
		ExpressionAttributeValues: item{
			":updated": str(formatTime(p.now())), ":x": str(executionID), ":status": str(string(provider.StatusRunning)),
			":pending": str(string(provider.StatusPending)), ":running": str(string(provider.StatusRunning)),
			":cancelling": str(string(provider.StatusCancelling)), ":blocked": str(string(provider.StatusBlocked)),
		},
	}
	if why != nil {
		diagnosis, err := json.Marshal(why)
		if err != nil {
			return fmt.Errorf("dynamo: instance %q: diagnosis: %w", instanceID, err)
		}
		in.UpdateExpression = aws.String(set + ", attention = :attention, blockedBy = :blockedBy, diagnosis = :diagnosis REMOVE paused")
		in.ConditionExpression = aws.String("#x = :x AND #status IN (:pending, :running, :cancelling, :blocked, :paused)")
		in.ExpressionAttributeValues[":paused"] = str(string(provider.StatusPaused))
		in.ExpressionAttributeValues[":status"] = str(string(provider.StatusBlocked))
		in.ExpressionAttributeValues[":attention"] = str(partitionOf(instanceID))
		in.ExpressionAttributeValues[":blockedBy"] = str(buildID)
		in.ExpressionAttributeValues[":diagnosis"] = str(string(diagnosis))
	}
	_, err := p.updateIf(ctx, instanceID, in)
	return err
}

// deadLetterQueues returns the sorted names of the queues that have a dead-letter queue.
func (p *Provider) deadLetterQueues() []string { return slices.Sorted(maps.Keys(p.hub.DeadLetters)) }
