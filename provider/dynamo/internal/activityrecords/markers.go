package activityrecords

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// skMarkers is the prefix of the crash markers of an execution: p#<activity, or 0>#<message id>.
const skMarkers = "p#"

// The attributes of a crash marker.
const (
	attrStarted  = "begun"    // deliveries that started and were not unmarked
	attrDelivery = "delivery" // the latest one
)

// The names in the expressions of each marked and unmarked delivery.
var (
	markerNames = table.Names(attrDelivery, "at", table.AttrTTL, attrStarted)
	unmarkNames = table.Names(attrDelivery, table.AttrTTL, attrStarted)
)

func markerKey(a *provider.Delivery) table.Item {
	// The key contains the message, because an activity can have two messages with separate counts, and each turn has a
	// different first message.
	return table.ExecutionKey(a.ExecutionID, fmt.Sprintf("%s%d#%s", skMarkers, a.ActivityID, a.Record.ID))
}

// PutCrashMarker counts started deliveries, on condition that this delivery was not counted. A repetition after a lost
// response is therefore not counted. The same applies to a function that was frozen while a later delivery started. An
// attempt that is Batched counts only if there is no other marker.
func (as *Store) PutCrashMarker(ctx context.Context, a provider.Delivery) (crashCount int, err error) {
	now := as.now()
	condition := "attribute_not_exists(#delivery) OR #delivery < :delivery"
	values := table.Item{
		":delivery": table.Num(int64(a.Record.ReceiveCount)),
		":begun":    table.Num(1),
		":at":       table.Str(table.FormatTime(now)),
		":ttl":      table.Unix(now.Add(table.TombstoneLifetime)),
	}
	if a.Batched {
		condition += " AND #begun = :none"
		values[":none"] = table.Num(0)
	}

	in := &dynamodb.UpdateItemInput{
		Key:                 markerKey(&a),
		UpdateExpression:    aws.String("SET #delivery = :delivery, #at = :at, #ttl = :ttl ADD #begun :begun"),
		ConditionExpression: &condition,

		ExpressionAttributeNames:            markerNames,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	mark, err := as.table.UpdateReturning(ctx, "", in)
	if err != nil {
		counted, refused := table.FailedItem(err, 0)
		if !refused {
			return 0, err
		}
		mark = counted
		if a.Batched && int(table.GetNumber(mark, attrDelivery)) != a.Record.ReceiveCount {
			return int(table.GetNumber(mark, attrStarted)), nil // the count does not include this delivery
		}
	}
	return max(0, int(table.GetNumber(mark, attrStarted))-1), nil
}

// DeleteCrashMarker sets the count to zero and leaves the item to its TTL, because functions have no permission to
// delete it. If a later delivery has started, for example because the lock expired in between, the marker of that
// delivery does not change. An attempt that has Progressed removes all markers except its own.
func (as *Store) DeleteCrashMarker(ctx context.Context, a provider.Delivery) error {
	left := int64(0)
	until := as.now()
	if a.Progressed {
		left = 1
		until = until.Add(table.TombstoneLifetime)
	}

	unmarked, err := as.setMarker(ctx, &a, "#delivery = :delivery", left, until)
	if err == nil && !unmarked {
		_, err = as.setMarker(
			ctx, &a, "#delivery > :delivery AND #begun > :begun", 1, as.now().Add(table.TombstoneLifetime),
		)
	}
	return err
}

// setMarker sets the count of a crash marker, if the latest marked delivery meets the condition.
func (as *Store) setMarker(
	ctx context.Context, a *provider.Delivery, condition string, begun int64, until time.Time,
) (counted bool, err error) {
	_, counted, err = as.table.UpdateIf(ctx, "", &dynamodb.UpdateItemInput{
		Key:                      markerKey(a),
		UpdateExpression:         aws.String("SET #begun = :begun, #ttl = :ttl"),
		ConditionExpression:      &condition,
		ExpressionAttributeNames: unmarkNames,
		ExpressionAttributeValues: table.Item{
			":delivery": table.Num(int64(a.Record.ReceiveCount)),
			":begun":    table.Num(begun),
			":ttl":      table.Unix(until),
		},
	})
	return counted, err
}
