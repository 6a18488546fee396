package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// redriveDeadLetter moves an event to the dead-letter queue of the inbox and redrives it. Its instance receives it. The
// orchestrator function moves a message that it cannot read to the same queue, where the message is dropped.
func (o *operator) redriveDeadLetter(ctx context.Context, id string) error {
	const event, value = "go", 7
	if _, err := o.client.Start(ctx, app.Receive, event, client.WithInstanceID(id)); err != nil {
		return err
	}
	if err := o.deadLetterEvent(ctx, id, event, value); err != nil {
		return err
	}
	unreadable := id + " {" // not JSON
	if err := o.sendUnreadable(ctx, unreadable); err != nil {
		return err
	}
	if err := o.until(ctx, func() error {
		result, err := o.admin.RedriveDeadLetters(ctx, admin.DeadLetterQuery{InstanceID: id})
		if err == nil && result.Done != 1 {
			err = fmt.Errorf("dead letter of %s was not redriven: %+v", id, result)
		}
		return err
	}); err != nil {
		return err
	}
	s, err := o.client.Wait(ctx, id)
	if err != nil {
		return err
	}
	if err := checkOutput(&s, value); err != nil {
		return err
	}
	return o.until(ctx, func() error { return o.dropUnreadable(ctx, unreadable) })
}

// redriven is the ID of the event and of its dead letter.
const redriven = "redriven"

// deadLetterEvent sends an event to the dead-letter queue of the inbox.
func (o *operator) deadLetterEvent(ctx context.Context, id, event string, value int) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	body, err := json.Marshal(provider.Message{
		V: provider.WireVersion, Kind: provider.MessageEventRaised, InstanceID: id, Name: event, EventID: redriven,
		Data: history.Payload(data),
	})
	if err != nil {
		return err
	}
	return o.deployment.Instances.DeadLetter(ctx, provider.QueueInbox, provider.Unreadable{
		Record: provider.Record{ID: redriven, Group: redriven, Body: string(body)}, Err: errors.New("self-test"),
	})
}

// sendUnreadable sends a message to the inbox.
func (o *operator) sendUnreadable(ctx context.Context, body string) error {
	id := "unreadable"
	out, err := o.deployment.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: &o.deployment.Config.InboxURL, Entries: []types.SendMessageBatchRequestEntry{
			{Id: &id, MessageBody: &body, MessageGroupId: &id, MessageDeduplicationId: &id},
		},
	})
	if err == nil && len(out.Failed) > 0 {
		err = errors.New(aws.ToString(out.Failed[0].Message))
	}
	if err != nil {
		return fmt.Errorf("send to the inbox: %w", err)
	}
	return nil
}

// dropUnreadable finds the dead letter with a body and drops it.
func (o *operator) dropUnreadable(ctx context.Context, body string) error {
	list, err := o.admin.DeadLetters(ctx, admin.DeadLetterQuery{Queue: provider.QueueInbox}, 0)
	if err != nil {
		return err
	}
	for i := range list.Items {
		d := &list.Items[i]
		if d.Record.Body != body {
			continue
		}
		if d.Reason == "" {
			return fmt.Errorf("dead letter %s has no reason", d.Record.ID)
		}
		result, err := o.admin.DropDeadLetters(ctx, admin.DeadLetterQuery{IDs: []string{d.Record.ID}})
		if err == nil && result.Done != 1 {
			err = fmt.Errorf("dead letter %s was not dropped: %+v", d.Record.ID, result)
		}
		return err
	}
	return fmt.Errorf("message %q is not in the dead-letter queue", body)
}
