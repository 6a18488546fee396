package simaws_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/internal/simaws"
)

type item = map[string]ddbtypes.AttributeValue

func str(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

func num(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberN{Value: s} }

// key returns the primary key ("p", sk).
func key(sk string) item { return item{"pk": str("p"), "sk": str(sk)} }

// with returns an item with the key ("p", sk) and more attributes.
func with(sk string, attributes item) item {
	it := key(sk)
	maps.Copy(it, attributes)

	return it
}

func put(tb testing.TB, c *simaws.Cloud, it item) {
	tb.Helper()

	if _, err := c.Table.PutItem(tb.Context(), &dynamodb.PutItemInput{Item: it}); err != nil {
		tb.Fatal(err)
	}
}

func get(tb testing.TB, c *simaws.Cloud, k item) item {
	tb.Helper()

	out, err := c.Table.GetItem(tb.Context(), &dynamodb.GetItemInput{Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		tb.Fatal(err)
	}

	return out.Item
}

// code returns the API error code of an error, "" without an error, and "?" if the error is not an API error.
func code(err error) string {
	if err == nil {
		return ""
	}

	var api smithy.APIError
	if !errors.As(err, &api) {
		return "?"
	}

	return api.ErrorCode()
}

func wantCode(tb testing.TB, err error, want string) {
	tb.Helper()

	if got := code(err); got != want {
		tb.Fatalf("error code %q, want %q: %v", got, want, err)
	}
}

// clock is a clock that tests set.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) time() time.Time { return c.now }

func (c *clock) add(d time.Duration) { c.now = c.now.Add(d) }

// desk is a queue with a clock.
type desk struct {
	*clock

	tb    testing.TB
	cloud *simaws.Cloud
	url   string
}

func newDesk(tb testing.TB, name string, config simaws.QueueConfig) *desk {
	tb.Helper()

	t := newClock()
	c := simaws.New(simaws.WithClock(t.time))

	return &desk{t, tb, c, c.Queues.Create(name, config)}
}

func (d *desk) send(body string) { d.sendDelayed(body, 0) }

func (d *desk) sendDelayed(body string, seconds int32) {
	d.tb.Helper()

	_, err := d.cloud.Queues.SendMessage(d.tb.Context(), &sqs.SendMessageInput{
		QueueUrl: &d.url, MessageBody: &body, DelaySeconds: seconds,
	})
	if err != nil {
		d.tb.Fatal(err)
	}
}

// sendTo sends a message to a group. The body is also the deduplication ID.
func (d *desk) sendTo(group, body string) *sqs.SendMessageOutput {
	d.tb.Helper()

	out, err := d.cloud.Queues.SendMessage(d.tb.Context(), &sqs.SendMessageInput{
		QueueUrl: &d.url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &body,
	})
	if err != nil {
		d.tb.Fatal(err)
	}

	return out
}

func (d *desk) receive(most int32) []sqstypes.Message {
	d.tb.Helper()

	out, err := d.cloud.Queues.ReceiveMessage(d.tb.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &d.url, MaxNumberOfMessages: most,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	})
	if err != nil {
		d.tb.Fatal(err)
	}

	return out.Messages
}

// want receives up to 10 messages and compares their bodies, in order.
func (d *desk) want(bodies ...string) []sqstypes.Message {
	d.tb.Helper()

	return d.wantOf(10, bodies...)
}

func (d *desk) wantOf(most int32, bodies ...string) []sqstypes.Message {
	d.tb.Helper()

	messages := d.receive(most)
	got := make([]string, len(messages))

	for i, m := range messages {
		got[i] = *m.Body
	}

	if len(got) != len(bodies) {
		d.tb.Fatalf("received %q, want %q", got, bodies)
	}

	for i := range got {
		if got[i] != bodies[i] {
			d.tb.Fatalf("received %q, want %q", got, bodies)
		}
	}

	return messages
}

func (d *desk) remove(m sqstypes.Message) error {
	_, err := d.cloud.Queues.DeleteMessage(d.tb.Context(), &sqs.DeleteMessageInput{
		QueueUrl: &d.url, ReceiptHandle: m.ReceiptHandle,
	})

	return err
}

func (d *desk) setVisibility(m sqstypes.Message, seconds int32) error {
	_, err := d.cloud.Queues.ChangeMessageVisibility(d.tb.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &d.url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds,
	})

	return err
}

// textOf returns the text of a string or number.
func textOf(v ddbtypes.AttributeValue) string {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return v.Value
	case *ddbtypes.AttributeValueMemberN:
		return v.Value
	default:
		return "?"
	}
}
