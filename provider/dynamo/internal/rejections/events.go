// Package rejections records messages that no instance accepts, and then replies to their senders. Examples are starts
// of an ID that is in use, cancels of a missing child, and events without a receiver. After the reply, no copy of the
// message may have an effect.
package rejections

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// Rejections records rejected messages and replies to them. It is safe for concurrent use.
type Rejections struct {
	table *table.Table
	inbox *inbox.Inbox
	now   func() time.Time
	log   *slog.Logger
}

// New returns the rejections of a hub.
func New(t *table.Table, in *inbox.Inbox, now func() time.Time, log *slog.Logger) *Rejections {
	return &Rejections{table: t, inbox: in, now: now, log: log}
}

// The rejected events of other instances are stored in an item next to the instance's item. The item does not belong to
// an incarnation, because a copy of an event can reach the next incarnation.
const (
	skRejectedEvents   = "e"
	attrRejectedEvents = "refusedEvents" // JSON, the latest senders at the end
	attrWrites         = "writes"        // the number of writes of the item
)

const (
	// maxSenders is the maximum number of stored senders, because the size of an item is limited.
	maxSenders = 256
	// maxWriteTries is the number of tries of a write with concurrent writers.
	maxWriteTries = 4
)

// rejectedSender holds the rejected events of one execution.
type rejectedSender struct {
	ExecutionID string `json:"x"`
	First       int64  `json:"first"`
	Last        int64  `json:"last"`
}

// ReadRejectedEvents reads the events that were rejected for an ID.
func (rj *Rejections) ReadRejectedEvents(ctx context.Context, instanceID string) (provider.RejectedEvents, error) {
	_, senders, err := rj.read(ctx, instanceID)
	if err != nil || len(senders) == 0 {
		return nil, err
	}
	refused := provider.RejectedEvents{}
	for _, s := range senders {
		refused[s.ExecutionID] = history.Range{First: s.First, Last: s.Last}
	}
	return refused, nil
}

func rejectedEventsKey(instanceID string) table.Item {
	return table.Key(table.IDPrefix+instanceID, skRejectedEvents)
}

func (rj *Rejections) read(ctx context.Context, instanceID string) (writes int64, senders []rejectedSender, err error) {
	found, err := rj.table.Get(ctx, instanceID, rejectedEventsKey(instanceID), provider.Strong)
	if err != nil || len(found) == 0 {
		return 0, nil, err
	}
	if err := json.Unmarshal([]byte(table.GetString(found, attrRejectedEvents)), &senders); err != nil {
		return 0, nil, fmt.Errorf("dynamo: instance %q: rejected events: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	return table.GetNumber(found, attrWrites), senders, nil
}

// RejectEvents stores the rejected events, on condition that no instance can consume them, and then responds to the
// sender. After the response, no copy of the events may be consumed.
func (rj *Rejections) RejectEvents(ctx context.Context, over string, ms ...*provider.InboxMessage) error {
	if err := rj.record(ctx, over, ms); err != nil {
		return err
	}
	why := outputs.NotFoundFailure
	if over != "" {
		why = outputs.EndedFailure
	}
	return rj.inbox.Send(ctx, outputs.DeliveryReplies(why(ms[0].InstanceID), ms...)...)
}

// record stores events that no instance has consumed. It returns ErrConflict if an instance exists that may
// consume them.
func (rj *Rejections) record(ctx context.Context, over string, ms []*provider.InboxMessage) error {
	instanceID := ms[0].InstanceID
	for range maxWriteTries {
		writes, senders, err := rj.read(ctx, instanceID)
		if err != nil {
			return err
		}
		more := addRejected(senders, ms)
		if more == nil {
			return nil
		}
		put, err := rj.encode(instanceID, writes, more)
		if err != nil {
			return err
		}

		err = rj.table.Transact(
			ctx, instanceID, []types.TransactWriteItem{{ConditionCheck: rj.noReceiver(instanceID, over)}, {Put: put}},
		)
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

// addRejected adds the events of messages to the rejected events. It returns nil if all are already stored.
func addRejected(senders []rejectedSender, ms []*provider.InboxMessage) []rejectedSender {
	all := slices.Clone(senders)
	for _, m := range ms {
		id := m.Parent.EventID
		at := slices.IndexFunc(all, func(s rejectedSender) bool { return s.ExecutionID == m.Parent.ExecutionID })
		if at < 0 {
			all = append(all, rejectedSender{ExecutionID: m.Parent.ExecutionID, First: id, Last: id})
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
	return all[max(0, len(all)-maxSenders):]
}

// encode replaces the rejected events, on condition that they have not changed.
func (rj *Rejections) encode(instanceID string, writes int64, senders []rejectedSender) (*types.Put, error) {
	doc, err := json.Marshal(senders)
	if err != nil {
		return nil, fmt.Errorf("dynamo: instance %q: rejected events: %w", instanceID, err)
	}
	it := rejectedEventsKey(instanceID)
	it[attrRejectedEvents] = table.Str(string(doc))
	it[attrWrites] = table.Num(writes + 1)
	it[table.AttrTTL] = table.Unix(rj.now().Add(table.TombstoneLifetime))

	put := &types.Put{Item: it}
	table.RequireAbsent(put)
	if writes > 0 {
		put.ConditionExpression = aws.String("#writes = :writes")
		put.ExpressionAttributeNames = table.Names(attrWrites)
		put.ExpressionAttributeValues = table.Item{":writes": table.Num(writes)}
	}
	return put, nil
}

// noReceiver returns the condition that an ID has no instance, or one that has ended.
func (rj *Rejections) noReceiver(instanceID, over string) *types.ConditionCheck {
	check := &types.ConditionCheck{
		Key: table.InstanceKey(instanceID),
		ConditionExpression: aws.String(
			table.NotExists + " OR attribute_exists(#deleted) OR attribute_exists(deleting)",
		),
		ExpressionAttributeNames:            table.Names(table.AttrTombstone),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if over != "" {
		check.ConditionExpression = aws.String(*check.ConditionExpression + " OR execution = :over")
		check.ExpressionAttributeValues = table.Item{":over": table.Str(over)}
	}
	return check
}
