package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// tombstoneLife is beyond what a message can live: 14 days in its queue, and as long in the dead letters (R17).
const tombstoneLife = 30 * 24 * time.Hour

func isTombstone(it item) bool {
	_, deleted := it[attrDeleted]
	return deleted
}

// pastOf are the starts that may never happen.
func pastOf(it item) []string {
	if past, ok := it[attrPast].(*types.AttributeValueMemberSS); ok {
		return past.Value
	}
	return nil
}

// succeedTombstone lets an instance take a tombstone's place, on the condition that it is still the one that was seen. It
// keeps the starts that may never happen.
func succeedTombstone(put *types.Put, old item) {
	refused := num(getNumber(old, attrRefused))
	put.Item[attrPast], put.Item[attrRefused] = old[attrPast], refused
	put.ConditionExpression = aws.String("#deleted = :deleted AND #refused = :refused")
	put.ExpressionAttributeNames = map[string]string{"#deleted": attrDeleted, nameRefused: attrRefused}
	put.ExpressionAttributeValues = item{":deleted": old[attrDeleted], ":refused": refused}
}

// RefuseCancel writes a tombstone for the start, and answers then: once the parent has been told, the child may never begin.
func (p *Provider) RefuseCancel(ctx context.Context, m *provider.InboxMessage) error {
	now := p.now()
	in := &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: instanceKey(m.InstanceID),
		UpdateExpression:    aws.String("SET #deleted = if_not_exists(#deleted, :now), #ttl = :ttl ADD #past :start, #refused :one"),
		ConditionExpression: aws.String("attribute_not_exists(" + attrPK + ") OR attribute_exists(#deleted)"),
		ExpressionAttributeNames: map[string]string{
			"#deleted": attrDeleted, "#ttl": attrTTL, "#past": attrPast, nameRefused: attrRefused,
		},
		ExpressionAttributeValues: item{
			":now": str(formatTime(now)), ":ttl": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(tombstoneLife).Unix(), 10)},
			":start": &types.AttributeValueMemberSS{Value: []string{m.StartID}}, ":one": num(1),
		},
	}
	err := call(ctx, "DynamoDB.UpdateItem", m.InstanceID, func() error {
		_, err := p.table.UpdateItem(ctx, in)
		return err
	})
	if _, there := errors.AsType[*types.ConditionalCheckFailedException](err); there {
		return fmt.Errorf("dynamo: instance %q: %w", m.InstanceID, provider.ErrConflict)
	}
	if err != nil {
		return err
	}
	answer := provider.ChildOutcome(m.InstanceID, m.Parent)
	answer.Error = &history.Failure{Type: history.TypeCancelled, Reason: m.Reason, Message: m.Text}
	return p.EnqueueForOrchestrator(ctx, answer)
}
