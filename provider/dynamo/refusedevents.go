package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The rejected events of other instances are stored in an item next to that of the instance. The item does not belong
// to an incarnation, because a copy of an event can reach the next one.
const (
	skRefusedEvents   = "e"
	attrRefusedEvents = "refusedEvents" // JSON, the latest senders at the end
	attrWrites        = "writes"        // the number of writes of the item
)

const (
	// refusedSenders is the maximum number of stored senders, because the size of an item is limited.
	refusedSenders = 256
	// refuseTries is the number of tries of a write with concurrent writers.
	refuseTries = 4
)

// refusedSender holds the rejected events of one execution.
type refusedSender struct {
	ExecutionID string `json:"x"`
	First       int64  `json:"first"`
	Last        int64  `json:"last"`
}

// ReadRejectedEvents reads the events that were rejected for an ID.
func (p *Provider) ReadRejectedEvents(ctx context.Context, instanceID string) (provider.RejectedEvents, error) {
	_, senders, err := p.readRefused(ctx, instanceID)
	if err != nil || len(senders) == 0 {
		return nil, err
	}
	refused := provider.RejectedEvents{}
	for _, s := range senders {
		refused[s.ExecutionID] = history.Range{First: s.First, Last: s.Last}
	}
	return refused, nil
}

func refusedEventsKey(instanceID string) table.Item {
	return table.Item{table.AttrPK: table.Str(table.IDPrefix + instanceID), table.AttrSK: table.Str(skRefusedEvents)}
}

func (p *Provider) readRefused(ctx context.Context, instanceID string) (writes int64, senders []refusedSender, err error) {
	found, err := p.table.Get(ctx, instanceID, refusedEventsKey(instanceID), provider.Strong)
	if err != nil || len(found) == 0 {
		return 0, nil, err
	}
	if err := json.Unmarshal([]byte(table.GetString(found, attrRefusedEvents)), &senders); err != nil {
		return 0, nil, fmt.Errorf("dynamo: instance %q: rejected events: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	return table.GetNumber(found, attrWrites), senders, nil
}

// RejectEvents stores the rejected events, on condition that no instance can consume them, and then responds to the
// sender. After the response, no copy of the events may be consumed.
func (p *Provider) RejectEvents(ctx context.Context, over string, ms ...*provider.InboxMessage) error {
	if err := p.rememberRefused(ctx, over, ms); err != nil {
		return err
	}
	why := provider.NotFoundFailure
	if over != "" {
		why = provider.EndedFailure
	}
	return p.inbox.Send(ctx, provider.DeliveryReplies(why(ms[0].InstanceID), ms...)...)
}

// rememberRefused stores events that no instance has consumed. It returns ErrConflict if an instance exists that may
// consume them.
func (p *Provider) rememberRefused(ctx context.Context, over string, ms []*provider.InboxMessage) error {
	instanceID := ms[0].InstanceID
	for range refuseTries {
		writes, senders, err := p.readRefused(ctx, instanceID)
		if err != nil {
			return err
		}
		more := withRefused(senders, ms)
		if more == nil {
			return nil
		}
		put, err := p.putRefused(instanceID, writes, more)
		if err != nil {
			return err
		}

		err = p.table.Transact(ctx, instanceID, []types.TransactWriteItem{{ConditionCheck: p.nobodyTakes(instanceID, over)}, {Put: put}})
		if err == nil {
			return nil
		}
		if _, there := table.FailedItem(err, 0); there {
			return fmt.Errorf("dynamo: instance %q: %w", instanceID, provider.ErrConflict)
		}
		if _, changed := table.FailedItem(err, 1); !changed {
			return err
		}
	}
	return &provider.Error{Op: "RejectEvents", InstanceID: instanceID, Retryable: true, Err: provider.ErrConflict}
}

// withRefused adds the events of messages to the rejected events. It returns nil if all are already stored.
func withRefused(senders []refusedSender, ms []*provider.InboxMessage) []refusedSender {
	all := slices.Clone(senders)
	for _, m := range ms {
		id := m.Parent.EventID
		at := slices.IndexFunc(all, func(s refusedSender) bool { return s.ExecutionID == m.Parent.ExecutionID })
		if at < 0 {
			all = append(all, refusedSender{ExecutionID: m.Parent.ExecutionID, First: id, Last: id})
			continue
		}
		s := all[at]
		s.First, s.Last = min(s.First, id), max(s.Last, id)
		if s != all[at] {
			all = append(slices.Delete(all, at, at+1), s)
		}
	}
	if slices.Equal(all, senders) {
		return nil
	}
	return all[max(0, len(all)-refusedSenders):]
}

// putRefused replaces the rejected events, on condition that they have not changed.
func (p *Provider) putRefused(instanceID string, writes int64, senders []refusedSender) (*types.Put, error) {
	doc, err := json.Marshal(senders)
	if err != nil {
		return nil, fmt.Errorf("dynamo: instance %q: rejected events: %w", instanceID, err)
	}
	it := refusedEventsKey(instanceID)
	it[attrRefusedEvents] = table.Str(string(doc))
	it[attrWrites] = table.Num(writes + 1)
	it[table.AttrTTL] = table.Unix(p.now().Add(table.TombstoneLifetime))

	put := &types.Put{Item: it}
	table.RequireAbsent(put)
	if writes > 0 {
		put.ConditionExpression = aws.String("#writes = :writes")
		put.ExpressionAttributeNames = map[string]string{"#writes": attrWrites}
		put.ExpressionAttributeValues = table.Item{":writes": table.Num(writes)}
	}
	return put, nil
}

// nobodyTakes returns the condition that an ID has no instance, or one that has ended.
func (p *Provider) nobodyTakes(instanceID, over string) *types.ConditionCheck {
	check := &types.ConditionCheck{
		Key:                                 table.InstanceKey(instanceID),
		ConditionExpression:                 aws.String(table.NotExists + " OR attribute_exists(#deleted) OR attribute_exists(deleting)"),
		ExpressionAttributeNames:            map[string]string{"#deleted": table.AttrTombstone},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if over != "" {
		check.ConditionExpression = aws.String(*check.ConditionExpression + " OR execution = :over")
		check.ExpressionAttributeValues = table.Item{":over": table.Str(over)}
	}
	return check
}
