package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// StartOrchestration creates segment 0 and the instance item, and then sends a wake (R11). If the process dies before
// it sends the wake, the sweeper finds the pending instance. A delayed start sends its timer first, so that every
// delayed start has one. A timer without its start has no effect.
func (p *Provider) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	b, err := p.conceive(ctx, &s)
	if err != nil {
		return provider.Instance{}, err
	}
	if err := p.delayFirstTurn(ctx, &b.Instance); err != nil {
		return provider.Instance{}, err
	}

	found, _, err := p.create(ctx, b)
	if err != nil {
		return found, err
	}
	return found, p.beginNow(ctx, &found)
}

// conceive returns the instance that a client's start creates.
func (p *Provider) conceive(ctx context.Context, s *provider.Start) (birth, error) {
	if err := p.builds.Require(ctx, s.Name, s.Version); err != nil {
		return birth{}, fmt.Errorf("dynamo: instance %q: %w", s.InstanceID, err)
	}

	in := p.newInstance(s.InstanceID, s.StartID)
	in.ExecutionID = cmp.Or(s.ExecutionID, in.ExecutionID)
	in.Name = s.Name
	in.Version = s.Version
	in.StartAt = s.StartAt
	in.Tags = s.Tags
	in.RequestedBy = history.Requester(s.RequestedBy)
	return birth{Instance: in, input: s.Input, past: s.RestartFrom, trace: s.TraceParent, stored: s.ExecutionID != "", look: s.CheckFirst}, nil
}

// delayFirstTurn sends the timer of a delayed start.
func (p *Provider) delayFirstTurn(ctx context.Context, in *provider.Instance) error {
	if !in.StartAt.After(in.CreatedAt) {
		return nil
	}
	return p.timers.Send(ctx, []provider.Timer{{V: provider.WireVersion, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 1, FireAt: in.StartAt}})
}

// beginNow wakes an instance that a start has created, unless its start is delayed. If the timer of a delayed start
// fired before the instance existed, the wake replaces it.
func (p *Provider) beginNow(ctx context.Context, in *provider.Instance) error {
	if p.now().Before(in.StartAt) {
		return nil
	}
	return p.inbox.Send(ctx, provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID})
}

// newInstance returns an instance that starts now.
func (p *Provider) newInstance(instanceID, startID string) provider.Instance {
	now := p.now().UTC().Truncate(time.Millisecond) // the precision with which it is stored
	return provider.Instance{
		InstanceID: instanceID, ExecutionID: provider.NewExecutionID(now, instanceID, startID), ExecutionNumber: 1,
		Status: provider.StatusPending, StartID: startID, CreatedAt: now, UpdatedAt: now,
	}
}

// CreateOrchestration creates the instance of a start message. The message counts as consumed: segment 0 has its
// position as the watermark.
func (p *Provider) CreateOrchestration(ctx context.Context, m *provider.InboxMessage) (*provider.Orchestration, error) {
	in := p.newInstance(m.InstanceID, m.StartID)
	if sent := m.Record.SentAt; !sent.IsZero() { // so that a repeated try writes the same item as one that failed
		in.ExecutionID = provider.NewExecutionID(sent, m.InstanceID, m.StartID)
	}
	in.ExecutionID = cmp.Or(m.NewExecutionID, in.ExecutionID)
	in.Name = m.Name
	in.Version = m.Version
	in.Parent = m.Parent
	in.Tags = m.Tags
	if m.StartAt != nil {
		in.StartAt = *m.StartAt
	}

	found, started, err := p.create(ctx, birth{Instance: in, input: m.Input, brings: m.InitialInputs, doubtful: m.PossibleDuplicateSentAt, consumed: m.Position, trace: m.TraceParent, stored: m.NewExecutionID != ""})
	if err != nil {
		return nil, err
	}
	if started == nil {
		return p.createdBefore(ctx, &found)
	}

	o := &provider.Orchestration{
		InstanceID: in.InstanceID, Verified: true, Segments: []provider.Segment{*started},
		Head: provider.Head{ExecutionID: in.ExecutionID, Watermark: started.Watermark},
	}
	out := provider.OutputsOf(o.Origin(), *started, nil)
	_, err = p.outbox.SendOutputs(ctx, &out)
	return o, err
}

// createdBefore reads the instance that the same start has created. It sends the outputs of the start again, because
// the process that created it may have died before it sent the timer.
func (p *Provider) createdBefore(ctx context.Context, in *provider.Instance) (*provider.Orchestration, error) {
	o, err := p.segments.ReadCurrent(ctx, in.InstanceID, in.ExecutionID, provider.Strong)
	if err != nil || o.Head.Segment > 0 || o.Previous != "" {
		return o, err
	}
	out := provider.OutputsOf(o.Origin(), o.Segments[0], nil)
	_, err = p.outbox.SendOutputs(ctx, &out)
	return o, err
}

// RejectStart adds the start to the rejected starts of the instance, and then responds to a waiting parent. The
// response comes last, because after it no start of that ID may succeed (R10). If the start's own instance is being
// deleted, the deletion responds.
func (p *Provider) RejectStart(ctx context.Context, m *provider.InboxMessage) error {
	in := p.rememberStart(&m.Message)
	in.ReturnValues = types.ReturnValueAllOld
	in.ConditionExpression = aws.String(hasRoom + " AND attribute_exists(" + table.AttrPK + ") AND (attribute_not_exists(deleting) OR startId <> :id)")
	in.ExpressionAttributeValues[":id"] = table.Str(m.StartID)
	there, err := p.table.UpdateReturning(ctx, m.InstanceID, in)
	if old, refused := table.FailedItem(err, 0); refused {
		if instances.IsDeleting(old) && table.GetString(old, table.AttrStartID) == m.StartID {
			return nil
		}
		p.warnForgotten(ctx, &m.Message, old)
		there, err = old, nil
	}
	if err != nil || m.Parent == nil {
		return err
	}

	answer := provider.ChildOutcome(m.InstanceID, m.Parent)
	answer.Error = &history.Failure{
		Type: history.TypeAlreadyExists, NonRetryable: true, Message: provider.NewAlreadyExistsError(m.InstanceID, new(instances.HolderOf(there)), provider.ErrAlreadyExists).Error(),
	}
	if instances.IsDeletedStart(there, m.StartID) { // it has run, and the response is needed if its outcome was lost
		answer.Error = lostOutcome(there, m.InstanceID, m.StartID)
	}
	return p.inbox.Send(ctx, answer)
}

// hasRoom is the condition that an instance can store another start.
const hasRoom = "(attribute_not_exists(#refused) OR #refused < :most)"

// warnForgotten warns that an instance cannot store another start. A function that was frozen before it could create
// the instance can still do so.
func (p *Provider) warnForgotten(ctx context.Context, m *provider.Message, it table.Item) {
	if !instances.MustNotStart(it, m.StartID) {
		p.log.WarnContext(ctx, "refused start not recorded: the instance has too many",
			"event", logevent.StartNotRecorded, "instance", m.InstanceID, "startId", m.StartID)
	}
}

// rememberStart returns the update that adds a start to the past starts of its instance. The caller sets the condition,
// which includes hasRoom.
func (p *Provider) rememberStart(m *provider.Message) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		Key:                                 table.InstanceKey(m.InstanceID),
		UpdateExpression:                    aws.String("ADD #past :start, #refused :one"),
		ExpressionAttributeNames:            map[string]string{"#past": table.AttrRejectedStarts, table.NameRejectedCount: table.AttrRejectedCount},
		ExpressionAttributeValues:           table.Item{":start": &types.AttributeValueMemberSS{Value: []string{m.StartID}}, ":one": table.Num(1), ":most": table.Num(instances.MaxStoredStarts)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}
