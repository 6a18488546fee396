package dynamo

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// StartOrchestration creates the instance item and h#0 in one transaction, then sends wake (R11). The wake may be lost with
// its sender: the watch finds the instance still pending. A start that is to wait sends its timer first, so that no start is
// without one; a timer without its start is nobody's.
func (p *Provider) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	if err := p.builds.known(ctx, p, s.Name, s.Version); err != nil {
		p.poke(ctx)
		return provider.Instance{}, fmt.Errorf("dynamo: instance %q: %w", s.InstanceID, err)
	}
	in := p.newInstance(s.InstanceID, s.StartID)
	in.Name, in.Version, in.StartAt, in.Tags, in.RequestedBy = s.Name, s.Version, s.StartAt, s.Tags, history.Requester(s.RequestedBy)
	delayed := s.StartAt.After(in.CreatedAt)
	if delayed {
		if err := p.delayTimers(ctx, []provider.Timer{{V: provider.WireVersion, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 1, FireAt: s.StartAt}}); err != nil {
			return provider.Instance{}, err
		}
	}
	found, _, err := p.create(ctx, in, s.Input, provider.Position{})
	if err != nil {
		return provider.Instance{}, err
	}
	if delayed && p.now().Before(s.StartAt) {
		return found, nil
	} // else the timer may have fired already, and have found no instance: a wake does what it should have done
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: found.InstanceID, ExecutionID: found.ExecutionID}
	return found, p.EnqueueForOrchestrator(ctx, wake)
}

// newInstance is one that begins now.
func (p *Provider) newInstance(instanceID, startID string) provider.Instance {
	now := p.now().UTC().Truncate(time.Millisecond) // as exact as it is stored
	return provider.Instance{
		InstanceID: instanceID, ExecutionID: provider.NewExecutionID(now, instanceID, startID), ExecutionNumber: 1,
		Status: provider.StatusPending, StartID: startID, CreatedAt: now, UpdatedAt: now,
	}
}

// CreateOrchestration creates what a start message asks for. The message counts as consumed: h#0 has its number.
func (p *Provider) CreateOrchestration(ctx context.Context, m *provider.InboxMessage) (*provider.Orchestration, error) {
	in := p.newInstance(m.InstanceID, m.StartID)
	in.Name, in.Version, in.Parent, in.Tags = m.Name, m.Version, m.Parent, m.Tags
	if m.StartAt != nil {
		in.StartAt = *m.StartAt
	}
	found, started, err := p.create(ctx, in, m.Input, m.Position)
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
	_, err = p.sendOutputs(ctx, &out)
	return o, err
}

// createdBefore reads what the same start has created. Whoever did so may have died before it sent the timer.
func (p *Provider) createdBefore(ctx context.Context, in *provider.Instance) (*provider.Orchestration, error) {
	o, err := p.readCurrent(ctx, in.InstanceID, in.ExecutionID, provider.Strong)
	if err != nil || o.Head.Segment > 0 || o.Previous != "" {
		return o, err
	}
	out := provider.OutputsOf(o.Origin(), o.Segments[0], nil)
	_, err = p.sendOutputs(ctx, &out)
	return o, err
}

// create writes both items, and returns the first segment. If this very start created the instance before, it returns that
// instance, and no segment.
func (p *Provider) create(ctx context.Context, in provider.Instance, input history.Payload, consumed provider.Position) (provider.Instance, *provider.Segment, error) {
	it, err := instanceItem(in)
	if err != nil {
		return in, nil, err
	}
	first := provider.Segment{Watermark: consumed, Events: []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: in.CreatedAt, Name: in.Name, Version: in.Version, Input: input,
		StartID: in.StartID, Number: in.ExecutionNumber, Tags: in.Tags, Parent: in.Parent, StartAt: timeOrNil(in.StartAt), RequestedBy: in.RequestedBy,
	}}}
	put := &types.Put{TableName: &p.hub.Table, Item: it}
	create(put)
	for {
		parts, err := encodeStart(in.InstanceID, in.ExecutionID, "", first)
		if err != nil {
			return in, nil, fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
		}
		err = p.transact(ctx, in.InstanceID, append([]types.TransactWriteItem{{Put: put}}, p.puts(parts)...))
		if err == nil {
			return in, &first, nil
		}
		old, refused := refusedItem(err, 0)
		switch {
		case !refused:
			return in, nil, err
		case getString(old, attrStartID) == in.StartID && !isDeleting(old):
			in, err = decodeInstance(old)
			return in, nil, err
		case isTombstone(old) && !mayNeverStart(old, in.StartID):
			succeedTombstone(put, old)
			first.Watermark = later(consumed, watermarkOf(old))
		default:
			return in, nil, fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, provider.ErrAlreadyExists)
		}
	}
}

// later is how far the inbox is consumed at a start: by the last life of the id, or by the message that starts the next (R3).
func later(own, before provider.Position) provider.Position {
	if own == (provider.Position{}) || before.Covers(own) {
		return before
	}
	return own
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// encodeStart makes the items of an execution's first segment, which say whose it is, and what it continues.
func encodeStart(instanceID, executionID, previous string, s provider.Segment) ([]item, error) {
	parts, err := encodeSegment(executionID, rand.Text(), s)
	if err != nil {
		return nil, err
	}
	parts[0][attrInstance] = str(instanceID)
	if previous != "" {
		parts[0][attrPrevious] = str(previous)
	}
	if oldest := provider.OldestReferred(&s.Events[0]); oldest != "" {
		parts[0][attrRefs] = str(oldest)
	}
	return parts, nil
}

// pastStarts bounds how many refused starts an instance remembers, and how many starts of deleted lives its id: an item must not
// grow for ever.
const pastStarts = 256

// RefuseStart adds the start to the past ones of the instance, then answers whoever waits. The answer comes last: once it is
// out, no start of that id may ever succeed (R10). A start whose own instance is being deleted is answered by the deletion.
func (p *Provider) RefuseStart(ctx context.Context, m *provider.InboxMessage) error {
	in := p.remember(m)
	in.ConditionExpression = aws.String(hasRoom + " AND attribute_exists(" + attrPK + ") AND (attribute_not_exists(deleting) OR startId <> :id)")
	in.ExpressionAttributeValues[":id"] = str(m.StartID)
	err := call(ctx, "DynamoDB.UpdateItem", m.InstanceID, func() error {
		_, err := p.table.UpdateItem(ctx, in)
		return err
	})
	if old, refused := refusedItem(err, 0); refused {
		if isDeleting(old) && getString(old, attrStartID) == m.StartID {
			return nil
		}
		p.forgets(ctx, m, old)
		err = nil
	}
	if err != nil || m.Parent == nil {
		return err
	}
	answer := provider.ChildOutcome(m.InstanceID, m.Parent)
	answer.Error = &history.Failure{
		Type: history.TypeAlreadyExists, NonRetryable: true, Message: fmt.Sprintf("instance %q: %v", m.InstanceID, provider.ErrAlreadyExists),
	}
	return p.EnqueueForOrchestrator(ctx, answer)
}

// hasRoom is the condition that an instance can remember one more start.
const hasRoom = "(attribute_not_exists(#refused) OR #refused < :most)"

// forgets warns of a start that an instance has no room for: a function that was frozen before it could make it may still do so.
func (p *Provider) forgets(ctx context.Context, m *provider.InboxMessage, it item) {
	if !mayNeverStart(it, m.StartID) {
		p.log.WarnContext(ctx, "the instance has refused too many starts to remember this one", "instance", m.InstanceID, "startId", m.StartID)
	}
}

// remember adds a start to the past ones of its instance, on a condition that is for the caller to set, hasRoom in it.
func (p *Provider) remember(m *provider.InboxMessage) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: instanceKey(m.InstanceID),
		UpdateExpression:                    aws.String("ADD #past :start, #refused :one"),
		ExpressionAttributeNames:            map[string]string{"#past": attrPast, nameRefused: attrRefused},
		ExpressionAttributeValues:           item{":start": &types.AttributeValueMemberSS{Value: []string{m.StartID}}, ":one": num(1), ":most": num(pastStarts)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// poke wakes no instance, but a function: one that was just deployed reports what it knows when it first runs. So a name
// that was refused for being newer than all reports is known moments later.
func (p *Provider) poke(ctx context.Context) {
	if !p.builds.mayPoke(p.now()) {
		return
	}
	if err := p.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageWake, InstanceID: "perdure:report-build"}); err != nil {
		p.log.WarnContext(ctx, "the orchestrator could not be asked to report its build", "error", err)
	}
}
