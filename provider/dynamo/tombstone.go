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
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

func isTombstone(it table.Item) bool {
	_, deleted := it[table.AttrTombstone]
	return deleted
}

// mayNeverStart reports whether a start was rejected, or created an incarnation of the ID that is deleted.
func mayNeverStart(it table.Item, startID string) bool {
	if past, ok := it[table.AttrRejectedStarts].(*types.AttributeValueMemberSS); ok && slices.Contains(past.Value, startID) {
		return true
	}
	return wasALife(it, startID)
}

// mayHaveTaken reports whether a deleted incarnation of the ID may have consumed the message of a start. The message
// contains an update and is delivered again, or it may be a copy and the incarnation was deleted after it was sent.
func mayHaveTaken(old table.Item, b *birth) bool {
	if !isTombstone(old) {
		return false
	}
	again := len(b.brings) > 0 && watermarkOf(old).Covers(b.consumed)
	return again || !b.doubtful.IsZero() && len(livesOf(old)) > 0 && b.doubtful.Before(purgedAt(old))
}

// purgedAt returns the time when the last incarnation of an ID was purged, according to its tombstone. Later rejections
// extend the life of the tombstone.
func purgedAt(tombstone table.Item) time.Time {
	if at, err := table.DecodeTime(tombstone, table.AttrTombstone); err == nil {
		return at
	}
	return time.Unix(table.GetNumber(tombstone, table.AttrTTL), 0).Add(-table.TombstoneLifetime)
}

// wasALife reports whether a start created an incarnation of the ID that is deleted.
func wasALife(it table.Item, startID string) bool {
	return slices.ContainsFunc(livesOf(it), func(v types.AttributeValue) bool {
		life, ok := v.(*types.AttributeValueMemberS)
		return ok && life.Value == startID
	})
}

// livesOf returns the starts of the deleted incarnations of an ID, the latest last.
func livesOf(it table.Item) []types.AttributeValue {
	if lives, ok := it[table.AttrDeletedStarts].(*types.AttributeValueMemberL); ok {
		return slices.Clone(lives.Value)
	}
	return nil
}

// succeedTombstone makes an instance replace a tombstone, on condition that the tombstone has not changed or has
// expired. The instance keeps the starts that must not succeed, and the time when the previous incarnation was purged.
func succeedTombstone(put *types.Put, old table.Item) {
	refused := table.Num(table.GetNumber(old, table.AttrRejectedCount))
	put.Item[table.AttrRejectedCount] = refused
	for _, kept := range []string{table.AttrRejectedStarts, table.AttrDeletedStarts} {
		if old[kept] != nil {
			put.Item[kept] = old[kept]
		}
	}
	if len(livesOf(old)) > 0 {
		put.Item[table.AttrPurgedAt] = table.Str(table.FormatTime(purgedAt(old)))
	}
	put.ConditionExpression = aws.String(table.NotExists + " OR #deleted = :deleted AND #refused = :refused")
	put.ExpressionAttributeNames = map[string]string{"#deleted": table.AttrTombstone, table.NameRejectedCount: table.AttrRejectedCount}
	put.ExpressionAttributeValues = table.Item{":deleted": old[table.AttrTombstone], ":refused": refused}
}

// RejectCancel writes a tombstone for the start, and then responds to the parent. After the response, the child may
// never start. If the instance is being deleted, its item stores the start for the tombstone. At most pastStarts starts
// are stored, as for rejected starts.
func (p *Provider) RejectCancel(ctx context.Context, m *provider.InboxMessage) error {
	if err := p.neverStart(ctx, &m.Message); err != nil {
		return err
	}
	answer := provider.ChildOutcome(m.InstanceID, m.Parent)
	answer.Error = &history.Failure{Type: history.TypeCancelled, Reason: m.Reason, Message: history.TruncateCancelMessage(m.Text)}
	return p.inbox.Send(ctx, answer)
}

// neverStart stores that a start must not succeed, if there is no instance. It returns ErrConflict if there is one.
func (p *Provider) neverStart(ctx context.Context, m *provider.Message) error {
	now := p.now()
	in := p.rememberStart(m)
	in.UpdateExpression = aws.String("SET #deleted = if_not_exists(#deleted, :now), #ttl = :ttl " + *in.UpdateExpression)
	in.ConditionExpression = aws.String(hasRoom + " AND (attribute_not_exists(" + table.AttrPK + ") OR attribute_exists(#deleted))")
	in.ExpressionAttributeNames["#deleted"] = table.AttrTombstone
	in.ExpressionAttributeNames["#ttl"] = table.AttrTTL
	in.ExpressionAttributeValues[":now"] = table.Str(table.FormatTime(now))
	in.ExpressionAttributeValues[":ttl"] = table.Unix(now.Add(table.TombstoneLifetime))

	err := p.table.Update(ctx, m.InstanceID, in)
	if old, there := table.FailedItem(err, 0); there && isDeleting(old) {
		in = p.rememberStart(m)
		in.ConditionExpression = aws.String(hasRoom + " AND attribute_exists(deleting)")
		err = p.table.Update(ctx, m.InstanceID, in)
	}

	switch old, there := table.FailedItem(err, 0); {
	case there && (isTombstone(old) || isDeleting(old)) && (mayNeverStart(old, m.StartID) || table.GetNumber(old, table.AttrRejectedCount) >= pastStarts):
		p.warnForgotten(ctx, m, old)
		err = nil
	case there:
		return fmt.Errorf("dynamo: instance %q: %w", m.InstanceID, provider.ErrConflict)
	}
	return err
}
