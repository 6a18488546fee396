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

// PutScheduleEntry writes an item of about 60 bytes.
func (hs *Store) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	it := table.HubKey(skSchedules + s.ID)
	it[attrNotedAt] = table.Num(s.NotedAt.UnixMilli())
	return hs.table.PutItem(ctx, "", it)
}

// DeleteScheduleEntry deletes the item on condition that its NotedAt is that of s.
func (hs *Store) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	err := hs.table.Delete(ctx, "", &dynamodb.DeleteItemInput{
		Key:                                 table.HubKey(skSchedules + s.ID),
		ConditionExpression:                 aws.String("notedAt = :then"),
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
	in := table.RangeQuery(table.PKHub, skSchedules+after, skSchedulesEnd, provider.Strong)
	return func(yield func(provider.ScheduleEntry, error) bool) {
		for it, err := range hs.table.Items(ctx, "", in) {
			s := provider.ScheduleEntry{
				ID:      strings.TrimPrefix(table.GetString(it, table.AttrSK), skSchedules),
				NotedAt: time.UnixMilli(table.GetNumber(it, attrNotedAt)).UTC(),
			}
			if (err != nil || s.ID != after) && !yield(s, err) {
				return
			}
		}
	}
}
