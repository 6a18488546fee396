package hubstore

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// skSchedules is the prefix of the sort keys of schedules. Their partition is that of the hub's own items.
const skSchedules = "schedule#"

// skSchedulesEnd sorts after all of them.
const skSchedulesEnd = "schedule$"

// attrNotedAt is the time when a schedule was added to the list, in milliseconds.
const attrNotedAt = "notedAt"

func scheduleKey(id string) table.Item {
	return table.Item{table.AttrPK: table.Str(table.PKHub), table.AttrSK: table.Str(skSchedules + id)}
}

// PutScheduleEntry writes an item of about 60 bytes.
func (hs *Store) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	it := scheduleKey(s.ID)
	it[attrNotedAt] = table.Num(s.NotedAt.UnixMilli())
	return hs.table.Put(ctx, "", &dynamodb.PutItemInput{Item: it})
}

// DeleteScheduleEntry deletes the item on condition that its NotedAt is that of s.
func (hs *Store) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	err := hs.table.Delete(ctx, "", &dynamodb.DeleteItemInput{
		Key: scheduleKey(s.ID),
		ConditionExpression: aws.String(
			"notedAt = :then",
		),
		ExpressionAttributeValues:           table.Item{":then": table.Num(s.NotedAt.UnixMilli())},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if _, refused := table.FailedItem(err, 0); refused {
		return nil
	}
	return err
}

// ListSchedules reads pages of 1 MB, about 15,000 schedules each.
func (hs *Store) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	return func(yield func(provider.ScheduleEntry, error) bool) {
		for items, err := range hs.table.Query(ctx, "", &dynamodb.QueryInput{
			ConsistentRead:         aws.Bool(true),
			KeyConditionExpression: aws.String("pk = :hub AND sk BETWEEN :first AND :end"),
			ExpressionAttributeValues: table.Item{
				":hub": table.Str(table.PKHub), ":first": table.Str(skSchedules + after),
				":end": table.Str(skSchedulesEnd),
			},
		}) {
			if err != nil {
				yield(provider.ScheduleEntry{}, err)
				return
			}
			for _, it := range items {
				id := strings.TrimPrefix(table.GetString(it, table.AttrSK), skSchedules)
				if id == after {
					continue
				}
				if !yield(
					provider.ScheduleEntry{ID: id, NotedAt: time.UnixMilli(table.GetNumber(it, attrNotedAt)).UTC()},
					nil,
				) {
					return
				}
			}
		}
	}
}
