package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// skMarks is the prefix of the crash markers of an execution: p#<activity, or 0>#<message id>.
const skMarks = "p#"

// The attributes of a crash marker.
const (
	attrBegun    = "begun"    // deliveries that started and were not unmarked
	attrDelivery = "delivery" // the latest one
)

func markKey(a *provider.Attempt) table.Item {
	return table.Item{
		table.AttrPK: table.Str(table.ExecutionPK(a.ExecutionID)),
		// The key contains the message, because an activity can have two messages with separate counts, and each turn
		// has another first message.
		table.AttrSK: table.Str(fmt.Sprintf("%s%d#%s", skMarks, a.ActivityID, a.Record.ID)),
	}
}

// PutCrashMarker counts started deliveries, on condition that this delivery was not counted. A repetition after a lost
// response therefore counts nothing, and neither does a function that was frozen while a later delivery started. An
// attempt that is Batched counts only if there is no other marker.
func (p *Provider) PutCrashMarker(ctx context.Context, a provider.Attempt) (died int, err error) {
	now := p.now()
	condition := "attribute_not_exists(#delivery) OR #delivery < :delivery"
	values := table.Item{
		":delivery": table.Num(int64(a.Record.ReceiveCount)), ":begun": table.Num(1), ":at": table.Str(table.FormatTime(now)), ":gone": table.Unix(now.Add(table.TombstoneLifetime)),
	}
	if a.Batched {
		condition += " AND #begun = :none"
		values[":none"] = table.Num(0)
	}

	in := &dynamodb.UpdateItemInput{
		Key:                                 markKey(&a),
		UpdateExpression:                    aws.String("SET #delivery = :delivery, #at = :at, #gone = :gone ADD #begun :begun"),
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            map[string]string{"#delivery": attrDelivery, nameAt: "at", "#gone": table.AttrTTL, "#begun": attrBegun},
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	mark, err := p.table.UpdateReturning(ctx, "", in)
	if err != nil {
		counted, refused := table.FailedItem(err, 0)
		if !refused {
			return 0, err
		}
		mark = counted
		if a.Batched && int(table.GetNumber(mark, attrDelivery)) != a.Record.ReceiveCount {
			return int(table.GetNumber(mark, attrBegun)), nil // none of the counted deliveries is this one
		}
	}
	return max(0, int(table.GetNumber(mark, attrBegun))-1), nil
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
		until = until.Add(table.TombstoneLifetime)
	}

	unmarked, err := p.countAttempts(ctx, &a, "#delivery = :delivery", left, until)
	if err == nil && !unmarked {
		_, err = p.countAttempts(ctx, &a, "#delivery > :delivery AND #begun > :begun", 1, p.now().Add(table.TombstoneLifetime))
	}
	return err
}

// countAttempts sets the count of a crash marker, if the latest marked delivery meets the condition.
func (p *Provider) countAttempts(ctx context.Context, a *provider.Attempt, condition string, begun int64, until time.Time) (counted bool, err error) {
	_, counted, err = p.table.UpdateIf(ctx, "", &dynamodb.UpdateItemInput{
		Key:                       markKey(a),
		UpdateExpression:          aws.String("SET #begun = :begun, #gone = :gone"),
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  map[string]string{"#delivery": attrDelivery, "#gone": table.AttrTTL, "#begun": attrBegun},
		ExpressionAttributeValues: table.Item{":delivery": table.Num(int64(a.Record.ReceiveCount)), ":begun": table.Num(begun), ":gone": table.Unix(until)},
	})
	return counted, err
}

// BlockInstance writes only the instance item, because a segment requires a readable history.
func (p *Provider) BlockInstance(ctx context.Context, instanceID, executionID, buildID string, why *history.Failure) error {
	const set, forget = "SET #updated = :updated, #status = :status", " REMOVE attention, blockedBy, diagnosis, paused"
	in := &dynamodb.UpdateItemInput{
		Key:                      table.InstanceKey(instanceID),
		UpdateExpression:         aws.String(set + forget),
		ConditionExpression:      aws.String("#x = :x AND #status IN (:pending, :running, :cancelling, :blocked)"),
		ExpressionAttributeNames: map[string]string{"#updated": "updated", table.NameStatus: table.AttrStatus, "#x": "execution"},
		ExpressionAttributeValues: table.Item{
			":updated": table.Str(table.FormatTime(p.now())), ":x": table.Str(executionID), ":status": table.Str(string(provider.StatusRunning)),
			":pending": table.Str(string(provider.StatusPending)), ":running": table.Str(string(provider.StatusRunning)),
			":cancelling": table.Str(string(provider.StatusCancelling)), ":blocked": table.Str(string(provider.StatusBlocked)),
		},
	}
	if why != nil {
		diagnosis, err := json.Marshal(why)
		if err != nil {
			return fmt.Errorf("dynamo: instance %q: diagnosis: %w", instanceID, err)
		}
		in.UpdateExpression = aws.String(set + ", attention = :attention, blockedBy = :blockedBy, diagnosis = :diagnosis REMOVE paused")
		in.ConditionExpression = aws.String("#x = :x AND #status IN (:pending, :running, :cancelling, :blocked, :paused)")
		in.ExpressionAttributeValues[":paused"] = table.Str(string(provider.StatusPaused))
		in.ExpressionAttributeValues[":status"] = table.Str(string(provider.StatusBlocked))
		in.ExpressionAttributeValues[":attention"] = table.Str(partitionOf(instanceID))
		in.ExpressionAttributeValues[":blockedBy"] = table.Str(buildID)
		in.ExpressionAttributeValues[":diagnosis"] = table.Str(string(diagnosis))
	}
	_, _, err := p.table.UpdateIf(ctx, instanceID, in)
	return err
}

// deadLetterQueues returns the sorted names of the queues that have a dead-letter queue.
func (p *Provider) deadLetterQueues() []string { return slices.Sorted(maps.Keys(p.queue.DeadLetters)) }
