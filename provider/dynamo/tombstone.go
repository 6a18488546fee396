package dynamo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

// mayNeverStart reports whether a start was refused, or made a life of the id that is deleted.
func mayNeverStart(it item, startID string) bool {
	if past, ok := it[attrPast].(*types.AttributeValueMemberSS); ok && slices.Contains(past.Value, startID) {
		return true
	}
	return slices.ContainsFunc(livesOf(it), func(v types.AttributeValue) bool {
		life, ok := v.(*types.AttributeValueMemberS)
		return ok && life.Value == startID
	})
}

// livesOf are the starts of the lives of an id that are deleted, the latest last.
func livesOf(it item) []types.AttributeValue {
	if lives, ok := it[attrLives].(*types.AttributeValueMemberL); ok {
		return slices.Clone(lives.Value)
	}
	return nil
}

// succeedTombstone lets an instance take a tombstone's place, on the condition that it is still the one that was seen. It
// keeps the starts that may never happen.
func succeedTombstone(put *types.Put, old item) {
	refused := num(getNumber(old, attrRefused))
	put.Item[attrRefused] = refused
	for _, kept := range []string{attrPast, attrLives} {
		if old[kept] != nil {
			put.Item[kept] = old[kept]
		}
	}
	put.ConditionExpression = aws.String("#deleted = :deleted AND #refused = :refused")
	put.ExpressionAttributeNames = map[string]string{"#deleted": attrDeleted, nameRefused: attrRefused}
	put.ExpressionAttributeValues = item{":deleted": old[attrDeleted], ":refused": refused}
}

// RefuseCancel writes a tombstone for the start, and answers then: once the parent has been told, the child may never begin. An
// instance that is being deleted remembers the start for its tombstone. It remembers pastStarts, as of refused starts.
func (p *Provider) RefuseCancel(ctx context.Context, m *provider.InboxMessage) error {
	now := p.now()
	in := p.remember(m)
	in.UpdateExpression = aws.String("SET #deleted = if_not_exists(#deleted, :now), #ttl = :ttl " + *in.UpdateExpression)
	in.ConditionExpression = aws.String(hasRoom + " AND (attribute_not_exists(" + attrPK + ") OR attribute_exists(#deleted))")
	in.ExpressionAttributeNames["#deleted"], in.ExpressionAttributeNames["#ttl"] = attrDeleted, attrTTL
	in.ExpressionAttributeValues[":now"], in.ExpressionAttributeValues[":ttl"] = str(formatTime(now)), unix(now.Add(tombstoneLife))
	update := func() error {
		_, err := p.table.UpdateItem(ctx, in)
		return err
	}
	err := call(ctx, "DynamoDB.UpdateItem", m.InstanceID, update)
	if old, there := refusedItem(err, 0); there && isDeleting(old) {
		in = p.remember(m)
		in.ConditionExpression = aws.String(hasRoom + " AND attribute_exists(deleting)")
		err = call(ctx, "DynamoDB.UpdateItem", m.InstanceID, update)
	}
	switch old, there := refusedItem(err, 0); {
	case there && (isTombstone(old) || isDeleting(old)) && (mayNeverStart(old, m.StartID) || getNumber(old, attrRefused) >= pastStarts):
		p.forgets(ctx, m, old)
		err = nil
	case there:
		return fmt.Errorf("dynamo: instance %q: %w", m.InstanceID, provider.ErrConflict)
	}
	if err != nil {
		return err
	}
	answer := provider.ChildOutcome(m.InstanceID, m.Parent)
	answer.Error = &history.Failure{Type: history.TypeCancelled, Reason: m.Reason, Message: history.CutCancelMessage(m.Text)}
	return p.EnqueueForOrchestrator(ctx, answer)
}
