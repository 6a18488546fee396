package rejections

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// LostOutcome returns the failure for a parent of a child whose outcome is unknown.
func LostOutcome(it table.Item, instanceID, startID string) *history.Failure {
	f := &history.Failure{Type: history.TypeOutcomeLost, NonRetryable: true}
	if instances.IsDeletedStart(it, startID) {
		f.Message = fmt.Sprintf("instance %q was purged before its outcome arrived", instanceID)
	} else {
		f.Message = fmt.Sprintf("instance %q not found, and its start is too old to determine whether it ran",
			instanceID)
	}
	return f
}

// RejectStart adds the start to the rejected starts of the instance, and then responds to a waiting parent. The
// response is sent last, because after the response no start with that ID may succeed (R10). If the start's own
// instance is being deleted, the deletion responds.
func (rj *Rejections) RejectStart(ctx context.Context, m *provider.InboxMessage) error {
	in := rj.addRejectedStart(&m.Message)
	in.ReturnValues = types.ReturnValueAllOld
	in.ConditionExpression = aws.String(
		belowLimit + " AND attribute_exists(" + table.AttrPK +
			") AND (attribute_not_exists(deleting) OR startId <> :id)",
	)
	in.ExpressionAttributeValues[":id"] = table.Str(m.StartID)
	there, err := rj.table.UpdateReturning(ctx, m.InstanceID, in)
	if old, refused := table.FailedItem(err, 0); refused {
		if instances.IsDeleting(old) && table.GetString(old, table.AttrStartID) == m.StartID {
			return nil
		}
		rj.warnNotRecorded(ctx, &m.Message, old)
		there, err = old, nil
	}
	if err != nil || m.Parent == nil {
		return err
	}

	reply := outputs.ChildOutcome(m.InstanceID, m.Parent)
	reply.Error = &history.Failure{
		Type:         history.TypeAlreadyExists,
		NonRetryable: true,
		Message: provider.NewAlreadyExistsError(m.InstanceID, new(instances.HolderOf(there)),
			provider.ErrAlreadyExists).
			Error(),
	}
	if instances.IsDeletedStart(there, m.StartID) { // it has run, and its outcome may be lost
		reply.Error = LostOutcome(there, m.InstanceID, m.StartID)
	}
	return rj.inbox.Send(ctx, reply)
}

// belowLimit is the condition that an instance can store another start.
const belowLimit = "(attribute_not_exists(#refused) OR #refused < :most)"

// warnNotRecorded warns that an instance cannot store another start. A function that was frozen before it could create
// the instance can still do so.
func (rj *Rejections) warnNotRecorded(ctx context.Context, m *provider.Message, it table.Item) {
	if !instances.MustNotStart(it, m.StartID) {
		rj.log.WarnContext(ctx, "rejected start not recorded: the instance has too many",
			"event", logevent.StartNotRecorded, "instance", m.InstanceID, "startId", m.StartID)
	}
}

// addRejectedStart returns the update that adds a start to the rejected starts of its instance. The caller sets the
// condition, which includes belowLimit.
func (rj *Rejections) addRejectedStart(m *provider.Message) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		Key:                      table.InstanceKey(m.InstanceID),
		UpdateExpression:         aws.String("ADD #past :start, #refused :one"),
		ExpressionAttributeNames: table.Names(table.AttrRejectedStarts, table.AttrRejectedCount),
		ExpressionAttributeValues: table.Item{
			":start": &types.AttributeValueMemberSS{Value: []string{m.StartID}},
			":one":   table.Num(1),
			":most":  table.Num(instances.MaxStoredStarts),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// RejectCancel writes a tombstone for the start, and then responds to the parent. After the response, the child may
// never start. If the instance is being deleted, its item stores the start for the tombstone, among its rejected
// starts.
func (rj *Rejections) RejectCancel(ctx context.Context, m *provider.InboxMessage) error {
	if err := rj.PreventStart(ctx, &m.Message); err != nil {
		return err
	}
	reply := outputs.ChildOutcome(m.InstanceID, m.Parent)
	reply.Error = &history.Failure{
		Type:    history.TypeCancelled,
		Reason:  m.Reason,
		Message: history.TruncateCancelMessage(m.Text),
	}
	return rj.inbox.Send(ctx, reply)
}

// PreventStart stores that a start must not succeed, if there is no instance. It returns ErrConflict if there is one.
func (rj *Rejections) PreventStart(ctx context.Context, m *provider.Message) error {
	now := rj.now()
	in := rj.addRejectedStart(m)
	in.UpdateExpression = aws.String(
		"SET #deleted = if_not_exists(#deleted, :now), #ttl = :ttl " + *in.UpdateExpression,
	)
	in.ConditionExpression = aws.String(
		belowLimit + " AND (attribute_not_exists(" + table.AttrPK + ") OR attribute_exists(#deleted))",
	)
	in.ExpressionAttributeNames["#deleted"] = table.AttrTombstone
	in.ExpressionAttributeNames["#ttl"] = table.AttrTTL
	in.ExpressionAttributeValues[":now"] = table.Str(table.FormatTime(now))
	in.ExpressionAttributeValues[":ttl"] = table.Unix(now.Add(table.TombstoneLifetime))

	err := rj.table.Update(ctx, m.InstanceID, in)
	if old, there := table.FailedItem(err, 0); there && instances.IsDeleting(old) {
		in = rj.addRejectedStart(m)
		in.ConditionExpression = aws.String(belowLimit + " AND attribute_exists(deleting)")
		err = rj.table.Update(ctx, m.InstanceID, in)
	}

	switch old, there := table.FailedItem(err, 0); {
	case there && (instances.IsTombstone(old) || instances.IsDeleting(old)) &&
		(instances.MustNotStart(old, m.StartID) ||
			table.GetNumber(old, table.AttrRejectedCount) >= instances.MaxStoredStarts):
		rj.warnNotRecorded(ctx, m, old)
		err = nil
	case there:
		return fmt.Errorf("dynamo: instance %q: %w", m.InstanceID, provider.ErrConflict)
	}
	return err
}
