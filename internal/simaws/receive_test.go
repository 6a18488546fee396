package simaws_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

func TestReceiveMessage_invalidInput_isRejected(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		in   sqs.ReceiveMessageInput
		want string
	}{
		"most":            {sqs.ReceiveMessageInput{MaxNumberOfMessages: 10, VisibilityTimeout: 43200}, ""},
		"eleven":          {sqs.ReceiveMessageInput{MaxNumberOfMessages: 11}, badValue},
		"long wait":       {sqs.ReceiveMessageInput{WaitTimeSeconds: 21}, badValue},
		"long visibility": {sqs.ReceiveMessageInput{VisibilityTimeout: 43201}, badValue},
		"unknown queue": {
			sqs.ReceiveMessageInput{QueueUrl: aws.String("sim://x")}, "AWS.SimpleQueueService.NonExistentQueue",
		},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := newDesk(t, "work", simaws.QueueConfig{})
			if tt.in.QueueUrl == nil {
				tt.in.QueueUrl = &d.url
			}

			_, err := d.cloud.Queues.ReceiveMessage(t.Context(), &tt.in)
			wantCode(t, err, tt.want)
		})
	}
}

func TestReceiveMessage_requestedAttributes_areReturned(t *testing.T) {
	t.Parallel()

	d := newDesk(t, "work", simaws.QueueConfig{})
	value := sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("v")}

	_, err := d.cloud.Queues.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &d.url, MessageBody: aws.String("x"),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{"a.1": value, "a.2": value, "b": value},
		MessageSystemAttributes: map[string]sqstypes.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1")},
		},
	})
	wantCode(t, err, "")

	for _, tt := range []struct {
		names []string
		want  int
	}{{nil, 0}, {[]string{"b"}, 1}, {[]string{"a.*"}, 2}, {[]string{"All"}, 3}} {
		out, err := d.cloud.Queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &d.url, MessageAttributeNames: tt.names,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"AWSTraceHeader"},
		})
		wantCode(t, err, "")
		d.add(time.Minute)

		m := out.Messages[0]
		if len(m.MessageAttributes) != tt.want || len(m.Attributes) != 1 || m.Attributes["AWSTraceHeader"] != "Root=1" {
			t.Errorf("%v: %v %v", tt.names, m.MessageAttributes, m.Attributes)
		}
	}
}

// longPoll receives with a wait of 20 seconds, and returns the bodies and the time that has passed.
func longPoll(ctx context.Context, c *simaws.Cloud, url string) (bodies []string, after time.Duration, err error) {
	start := time.Now()

	out, err := c.Queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
	if err != nil {
		return nil, time.Since(start), err
	}

	for _, m := range out.Messages {
		bodies = append(bodies, *m.Body)
	}

	return bodies, time.Since(start), nil
}

func TestLongPoll_messageBecomesVisible_returnsIt(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		act  func(d *desk)
		want time.Duration
	}{
		"sent while waiting": {func(d *desk) {
			time.Sleep(3 * time.Second)
			d.send("x")
		}, 3 * time.Second},
		"delay ends": {func(d *desk) { d.sendDelayed("x", 7) }, 7 * time.Second},
		"delayed while asleep": {func(d *desk) {
			d.sendDelayed("far", 900)
			time.Sleep(time.Second)
			d.sendDelayed("x", 4)
		}, 5 * time.Second},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := simaws.New()
				d := &desk{tb: t, cloud: c, url: c.Queues.Create("work", simaws.QueueConfig{})}

				go tt.act(d)

				bodies, after, err := longPoll(t.Context(), c, d.url)
				if err != nil || len(bodies) != 1 || bodies[0] != "x" || after != tt.want {
					t.Fatalf("%v after %v (%v), want x after %v", bodies, after, err, tt.want)
				}
			})
		})
	}
}

func TestLongPoll_noMessage_returnsEmptyAfterTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := simaws.New()
		url := c.Queues.Create("work", simaws.QueueConfig{})

		bodies, after, err := longPoll(t.Context(), c, url)
		if err != nil || len(bodies) != 0 || after != 20*time.Second {
			t.Fatalf("%v after %v: %v", bodies, after, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()

		_, after, err = longPoll(ctx, c, url)
		if !errors.Is(err, context.DeadlineExceeded) || after != 2*time.Second {
			t.Fatalf("after %v: %v", after, err)
		}
	})
}
