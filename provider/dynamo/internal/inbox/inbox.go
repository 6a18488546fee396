// Package inbox encodes and sends messages for orchestrations, decodes received messages, and writes items that
// interrupt inline activities.
package inbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/wire"
)

// Inbox is the inbox of a hub. It is safe for concurrent use.
type Inbox struct {
	table *table.Table
	queue *sqsqueue.Queues
	now   func() time.Time
}

// New returns the inbox of a hub.
func New(t *table.Table, q *sqsqueue.Queues, now func() time.Time) *Inbox {
	return &Inbox{table: t, queue: q, now: now}
}

// Send sends messages to the inbox, in the group of their instance.
func (ib *Inbox) Send(ctx context.Context, ms ...provider.Message) error {
	entries := make([]sqsqueue.Entry, 0, len(ms))
	var m provider.Message // a copy of each message, because callers may share them
	for i := range ms {
		m = ms[i]
		m.Hub = ib.queue.Hub
		e, err := Encode(&m)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	ib.noteInterruptions(ctx, ms)
	return ib.queue.SendInOrder(ctx, ib.queue.InboxURL, entries)
}

// Encode returns the entry of a message. It sets the version of the message.
func Encode(m *provider.Message) (sqsqueue.Entry, error) {
	m.V = provider.WireVersion
	doc, err := wire.EncodeMessage(m)
	if err != nil {
		return sqsqueue.Entry{}, fmt.Errorf("dynamo: %s message for instance %q: %w", m.Kind, m.InstanceID, err)
	}
	e := sqsqueue.Entry{Body: sqsqueue.SqsText(doc), Group: sqsqueue.GroupID(m.InstanceID), Dedup: deduplicationID(m)}
	if most := sqsqueue.BodyLimitFor(m.Redrive); len(e.Body) > most {
		return sqsqueue.Entry{}, fmt.Errorf(
			"dynamo: %s message for instance %q: %d bytes exceed the limit of %d bytes", m.Kind, m.InstanceID,
			len(e.Body), most,
		)
	}
	// the queue must not drop the message as a duplicate of the original, but must drop repetitions of the same
	// recovery
	if m.Redrive != nil {
		e.Dedup = table.Digest("picked up", m.Redrive.Record, strconv.Itoa(m.Redrive.Times))
	}
	return e, nil
}

// deduplicationID returns a deduplication ID for the kind of a message and the IDs of its cause, so that a repetition
// within SQS's five minutes is one message. The data of the message, such as a result, does not count. A message
// without such IDs, for example a wake, gets a random ID, because an earlier message must not suppress it.
func deduplicationID(m *provider.Message) string {
	switch m.Kind {
	case provider.MessageActivityOutcomes, provider.MessageActivityAttempts, provider.MessageActivityPending:
		return outcomesID(m)
	case provider.MessageTimerFired:
		return timerID(m)
	case provider.MessageEventRaised:
		if m.EventID != "" {
			return table.Digest(string(m.Kind), m.InstanceID, m.StartID, m.Name, m.EventID)
		}
	case provider.MessageEventSent, provider.MessageUpdateSent:
		return table.Digest(string(m.Kind), m.InstanceID, provider.StartID(m.Parent.ExecutionID, m.Parent.EventID))
	case provider.MessageEventAnswered:
		return responseID(m)
	case provider.MessageStart:
		return table.Digest(string(m.Kind), m.InstanceID, m.StartID)
	case provider.MessageChildOutcome, provider.MessageCancelChildOutcome, provider.MessageUpdateAnswered:
		return table.Digest(string(m.Kind), m.ExecutionID, strconv.FormatInt(m.SourceEventID, 10))
	case provider.MessageCancel:
		if m.Parent != nil {
			return table.Digest(string(m.Kind), m.InstanceID, m.StartID)
		}
	case provider.MessageExecutionSuspended, provider.MessageExecutionResumed:
		if m.EventID != "" {
			return table.Digest(string(m.Kind), m.InstanceID, m.StartID, m.EventID)
		}
	case provider.MessageUpdate:
		return table.Digest(string(m.Kind), m.InstanceID, m.StartID, m.EventID)
	case provider.MessageWake, provider.MessageTerminate, provider.MessageCancelActivity:
	}
	return rand.Text()
}

// timerID is deduplicationID for a message that reports a due timer. A pending attempt is checked repeatedly, each time
// with a different timer.
func timerID(m *provider.Message) string {
	parts := []string{string(m.Kind), m.ExecutionID, strconv.FormatInt(m.TimerID, 10)}
	if m.Attempt > 0 {
		parts = append(parts, strconv.Itoa(m.Attempt))
	}
	if m.Attempt > 0 && m.FireAt != nil {
		parts = append(parts, table.FormatTime(*m.FireAt))
	}
	return table.Digest(parts...)
}

// outcomesID is deduplicationID for a message that reports outcomes of activities.
func outcomesID(m *provider.Message) string {
	parts := []string{string(m.Kind), m.ExecutionID}
	for _, o := range m.Outcomes {
		run := strconv.Itoa(o.Attempt)
		if m.Kind == provider.MessageActivityAttempts {
			run = o.Run
		}
		parts = append(parts, strconv.FormatInt(o.ActivityID, 10), run)
	}
	return table.Digest(parts...)
}

// responseID is deduplicationID for a response to events.
func responseID(m *provider.Message) string {
	parts := []string{string(m.Kind), m.ExecutionID, m.ChildID, strconv.FormatBool(m.Error != nil)}
	for _, r := range m.SourceEventIDs {
		parts = append(parts, strconv.FormatInt(r.First, 10), strconv.FormatInt(r.Last, 10))
	}
	return table.Digest(parts...)
}

// Decode groups inbox records by instance. It returns a record as unreadable if the record is not in
// its instance's message group. The sequence number of such a record is not comparable with the instance's watermark,
// and would make the instance drop messages that it has not consumed.
func (ib *Inbox) Decode(
	records []provider.Record,
) (items []*provider.OrchestrationItem, unreadable []provider.Unreadable) {
	byInstance := map[string]*provider.OrchestrationItem{}
	for _, r := range records {
		m, err := wire.DecodeMessage(r.Body)
		if err == nil {
			err = ib.checkRecipient(&m, r.Group)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		it := byInstance[m.InstanceID]
		if it == nil {
			it = &provider.OrchestrationItem{InstanceID: m.InstanceID}
			byInstance[m.InstanceID] = it
			items = append(items, it)
		}
		it.Messages = append(it.Messages, provider.InboxMessage{
			Message: m, Position: provider.Position{Inbox: ib.queue.InboxURL, Sequence: r.Sequence}, Record: r,
		})
	}
	return items, unreadable
}

// checkRecipient returns an error for a message of another hub or in another instance's group, because it was copied to
// this queue.
func (ib *Inbox) checkRecipient(m *provider.Message, group string) error {
	if want := sqsqueue.GroupID(m.InstanceID); group != want {
		return fmt.Errorf("dynamo: inbox message: %w",
			&provider.FieldError{
				Field: "instanceId",
				Problem: fmt.Sprintf("%q belongs to message group %s, but the message is in %q", m.InstanceID, want,
					group),
			})
	}
	return ib.queue.CheckHub(&m.Hub)
}
