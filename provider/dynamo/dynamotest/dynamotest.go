// Package dynamotest runs the conformance suite of package providertest on provider/dynamo. It contains the common part
// of the harnesses for AWS in memory and for local clouds.
package dynamotest

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/sqsrecord"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/providertest"
)

// Cloud creates the tables and queues of a test.
type Cloud struct {
	Table  dynamo.TableAPI
	Queues dynamo.QueueAPI
	// Schedules holds long timers. If it is nil, timers use hops.
	Schedules dynamo.ScheduleAPI
	// Bucket is a client of the bucket BucketName, which no other test uses. It can be nil.
	Bucket     dynamo.BucketAPI
	BucketName string
	// QueueARN returns the ARN of a queue. It is required with Schedules.
	QueueARN func(url string) string
	// CreateQueue creates a queue and returns its URL. Names of FIFO queues end with ".fifo".
	CreateQueue func(name string, visibility time.Duration) (url string)
	// Options are options of the provider, in addition to its logger.
	Options []dynamo.Option
}

// Hub returns an empty hub on an existing table, with its own queues. All hooks except Lag are set.
func (c Cloud) Hub(t *testing.T, table string, config providertest.Config) providertest.Hub {
	t.Helper()
	where := dynamo.HubConfig{
		Name: "conformance", Table: table, WorkQueues: map[string]string{}, DeadLetters: map[string]string{},
	}
	create := func(name, suffix string) string {
		where.DeadLetters[name] = c.CreateQueue(name+"-dead"+suffix, config.Visibility)
		return c.CreateQueue(name+suffix, config.Visibility)
	}
	exclusive := history.ExclusiveQueue(providertest.Queue)
	where.DeadLetters[exclusive] = c.CreateQueue(providertest.Queue+"-dead.fifo", config.Visibility)
	where.WorkQueues[exclusive] = c.CreateQueue(exclusive, config.Visibility)
	where.InboxURL, where.TimersURL = create(provider.QueueInbox, ".fifo"), create(provider.QueueTimers, "")
	for _, name := range []string{providertest.Queue, providertest.OtherQueue} {
		where.WorkQueues[name] = create(name, "")
	}
	if c.Schedules != nil {
		where.TimerMode, where.ScheduleGroup, where.ScheduleRoleARN = dynamo.TimersSchedules, "default",
			"arn:aws:iam::000000000000:role/schedules"
		where.TimersARN, where.TimersDeadLettersARN = c.QueueARN(where.TimersURL),
			c.QueueARN(where.DeadLetters[provider.QueueTimers])
	}
	if c.Bucket != nil {
		where.PayloadBucket = c.BucketName
	}
	faults := &faults{}
	p, err := dynamo.New(where, dynamo.Clients{
		Table: faultyTable{c.Table, faults}, Queues: faultyQueues{c.Queues, faults}, Schedules: c.Schedules,
		Bucket: c.Bucket,
	},
		append([]dynamo.Option{dynamo.WithLogger(slog.New(slog.DiscardHandler))}, c.Options...)...)
	if err != nil {
		t.Fatal(err)
	}
	urls := map[string]string{provider.QueueInbox: where.InboxURL, provider.QueueTimers: where.TimersURL}
	maps.Copy(urls, where.WorkQueues)
	return providertest.Hub{
		Provider:      p,
		Receive:       func(queue string) []provider.Record { return c.receive(t, urls[queue]) },
		ReceiveDead:   func(queue string) []provider.Record { return c.receive(t, where.DeadLetters[queue]) },
		PutDeadLetter: func(queue string, r provider.Record) { c.bury(t, where.DeadLetters[queue], &r) },
		Now:           time.Now, //nolint:forbidigo // the provider's default clock, which a bubble replaces
		Advance:       time.Sleep,
		Fail:          faults.arm,
		Damage: func(executionID string, segment int64, d providertest.Damage) {
			damage{t, c.Table, table, executionID, segment}.do(d)
		},
	}
}

// receive receives the messages that are visible now. In memory and on ministack no messages are in transit.
func (c Cloud) receive(t *testing.T, url string) []provider.Record {
	t.Helper()
	out, err := c.Queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	records := make([]provider.Record, len(out.Messages))
	for i := range out.Messages {
		m := &out.Messages[i]
		records[i] = sqsrecord.Decode(*m.MessageId, *m.ReceiptHandle, *m.Body, m.Attributes)
	}
	return records
}

// bury sends a record unchanged to a dead-letter queue, without the error attribute, like a queue that moves the record
// itself.
func (c Cloud) bury(t *testing.T, url string, r *provider.Record) {
	t.Helper()
	e := sqstypes.SendMessageBatchRequestEntry{Id: aws.String("0"), MessageBody: &r.Body}
	if strings.HasSuffix(url, ".fifo") {
		e.MessageGroupId, e.MessageDeduplicationId = &r.Group, &r.ID
	}
	out, err := c.Queues.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
		QueueUrl: &url, Entries: []sqstypes.SendMessageBatchRequestEntry{e},
	})
	if err != nil || len(out.Failed) > 0 {
		t.Fatal(out, err)
	}
}
