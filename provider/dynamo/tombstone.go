package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// mayHaveTaken reports whether a deleted incarnation of the ID may have consumed the message of a start. The message
// contains an update and is delivered again, or it may be a copy and the incarnation was deleted after it was sent.
func mayHaveTaken(old table.Item, b *birth) bool {
	if !instances.IsTombstone(old) {
		return false
	}
	again := len(b.brings) > 0 && instances.WatermarkOf(old).Covers(b.consumed)
	return again || !b.doubtful.IsZero() && len(instances.DeletedStarts(old)) > 0 && b.doubtful.Before(instances.PurgedAt(old))
}

// RejectCancel writes a tombstone for the start, and then responds to the parent. After the response, the child may
// never start. If the instance is being deleted, its item stores the start for the tombstone. At most MaxStoredStarts starts
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
	if old, there := table.FailedItem(err, 0); there && instances.IsDeleting(old) {
		in = p.rememberStart(m)
		in.ConditionExpression = aws.String(hasRoom + " AND attribute_exists(deleting)")
		err = p.table.Update(ctx, m.InstanceID, in)
	}

	switch old, there := table.FailedItem(err, 0); {
	case there && (instances.IsTombstone(old) || instances.IsDeleting(old)) && (instances.MustNotStart(old, m.StartID) || table.GetNumber(old, table.AttrRejectedCount) >= instances.MaxStoredStarts):
		p.warnForgotten(ctx, m, old)
		err = nil
	case there:
		return fmt.Errorf("dynamo: instance %q: %w", m.InstanceID, provider.ErrConflict)
	}
	return err
}
