package dynamo

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
)

// skSchedules is the prefix of the sort keys of schedules. Their partition is that of the hub's own items.
const skSchedules = "schedule#"

// skSchedulesEnd sorts after all of them.
const skSchedulesEnd = "schedule$"

// attrNotedAt is the time when a schedule was added to the list, in milliseconds.
const attrNotedAt = "notedAt"

func scheduleKey(id string) item { return item{attrPK: str(pkHub), attrSK: str(skSchedules + id)} }

// PutScheduleEntry writes an item of about 60 bytes.
func (p *Provider) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	it := scheduleKey(s.ID)
	it[attrNotedAt] = num(s.NotedAt.UnixMilli())
	return call(ctx, "DynamoDB.PutItem", "", func() error {
		_, err := p.table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.hub.Table, Item: it})
		return err
	})
}

// DeleteScheduleEntry deletes the item on condition that its NotedAt is that of s.
func (p *Provider) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	err := call(ctx, "DynamoDB.DeleteItem", "", func() error {
		_, err := p.table.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &p.hub.Table, Key: scheduleKey(s.ID),
			ConditionExpression: aws.String("notedAt = :then"), ExpressionAttributeValues: item{":then": num(s.NotedAt.UnixMilli())},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	})
	if _, refused := refusedItem(err, 0); refused {
		return nil
	}
	return err
}

// ListSchedules reads pages of 1 MB, about 15,000 schedules each.
func (p *Provider) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	return func(yield func(provider.ScheduleEntry, error) bool) {
		for items, err := range p.query(ctx, "", &dynamodb.QueryInput{
			TableName: &p.hub.Table, ConsistentRead: aws.Bool(true),
			KeyConditionExpression:    aws.String("pk = :hub AND sk BETWEEN :first AND :end"),
			ExpressionAttributeValues: item{":hub": str(pkHub), ":first": str(skSchedules + after), ":end": str(skSchedulesEnd)},
		}) {
			if err != nil {
				yield(provider.ScheduleEntry{}, err)
				return
			}
			for _, it := range items {
				id := strings.TrimPrefix(getString(it, attrSK), skSchedules)
				if id == after {
					continue
				}
				if !yield(provider.ScheduleEntry{ID: id, NotedAt: time.UnixMilli(getNumber(it, attrNotedAt)).UTC()}, nil) {
					return
				}
			}
		}
	}
}
