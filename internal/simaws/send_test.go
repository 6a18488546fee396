package simaws_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

const (
	badValue = "InvalidParameterValue"
	missing  = "MissingParameter"
)

// TestSendMessage_invalidMessage_isRejectedAloneAndInABatch expects the same error alone and in a batch.
func TestSendMessage_invalidMessage_isRejectedAloneAndInABatch(t *testing.T) {
	t.Parallel()

	type entry = sqstypes.SendMessageBatchRequestEntry

	long := strings.Repeat("g", 129)
	tests := map[string]struct {
		queue string
		entry entry
		want  string
	}{
		"plain":              {"work", entry{MessageBody: aws.String("x")}, ""},
		"1 MiB":              {"work", entry{MessageBody: aws.String(strings.Repeat("x", 1<<20))}, ""},
		"no body":            {"work", entry{}, missing},
		"control character":  {"work", entry{MessageBody: aws.String("a\x01")}, "InvalidMessageContents"},
		"not a character":    {"work", entry{MessageBody: aws.String("a\uFFFF")}, "InvalidMessageContents"},
		"not UTF-8":          {"work", entry{MessageBody: aws.String("a\xff")}, "InvalidMessageContents"},
		"allowed characters": {"work", entry{MessageBody: aws.String("\t\r\n \uFFFD\U00010000")}, ""},
		"900 s":              {"work", entry{MessageBody: aws.String("x"), DelaySeconds: 900}, ""},
		"901 s":              {"work", entry{MessageBody: aws.String("x"), DelaySeconds: 901}, badValue},
		"negative delay":     {"work", entry{MessageBody: aws.String("x"), DelaySeconds: -1}, badValue},
		"fair queue": {
			"work", entry{MessageBody: aws.String("x"), MessageGroupId: aws.String("g")}, "",
		},
		"deduplication, no FIFO": {
			"work", entry{MessageBody: aws.String("x"), MessageDeduplicationId: aws.String("d")}, badValue,
		},
		"FIFO":                      {"in.fifo", fifoEntry("g", "d", 0), ""},
		"FIFO of all characters":    {"in.fifo", fifoEntry("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "d", 0), ""},
		"FIFO with delay":           {"in.fifo", fifoEntry("g", "d", 1), badValue},
		"FIFO, group of 129":        {"in.fifo", fifoEntry(long, "d", 0), badValue},
		"FIFO, group of 128":        {"in.fifo", fifoEntry(long[1:], "d", 0), ""},
		"FIFO, space in group":      {"in.fifo", fifoEntry("a b", "d", 0), badValue},
		"FIFO, not ASCII":           {"in.fifo", fifoEntry("é", "d", 0), badValue},
		"FIFO, long deduplication":  {"in.fifo", fifoEntry("g", long, 0), badValue},
		"FIFO, empty deduplication": {"in.fifo", fifoEntry("g", "", 0), badValue},
		"FIFO without group": {
			"in.fifo", entry{MessageBody: aws.String("x"), MessageDeduplicationId: aws.String("d")}, missing,
		},
		"FIFO without deduplication": {
			"in.fifo", entry{MessageBody: aws.String("x"), MessageGroupId: aws.String("g")}, badValue,
		},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := newDesk(t, tt.queue, simaws.QueueConfig{})
			_, err := d.cloud.Queues.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: &d.url, MessageBody: tt.entry.MessageBody, DelaySeconds: tt.entry.DelaySeconds,
				MessageGroupId: tt.entry.MessageGroupId, MessageDeduplicationId: tt.entry.MessageDeduplicationId,
			})
			wantCode(t, err, tt.want)

			tt.entry.Id = aws.String("1")
			out, err := d.cloud.Queues.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
				QueueUrl: &d.url, Entries: []entry{tt.entry},
			})
			wantCode(t, err, "")

			got := ""
			if len(out.Failed) == 1 {
				got = *out.Failed[0].Code
			}

			if got != tt.want || len(out.Failed)+len(out.Successful) != 1 {
				t.Fatalf("in a batch: %q, want %q", got, tt.want)
			}
		})
	}
}

func fifoEntry(group, deduplication string, delay int32) sqstypes.SendMessageBatchRequestEntry {
	return sqstypes.SendMessageBatchRequestEntry{
		MessageBody: aws.String("x"), MessageGroupId: &group, MessageDeduplicationId: &deduplication,
		DelaySeconds: delay,
	}
}

func TestSendMessage_overOneMiB_isRejected(t *testing.T) {
	t.Parallel()

	d := newDesk(t, "work", simaws.QueueConfig{})
	body := strings.Repeat("x", 1<<20)
	attributes := map[string]sqstypes.MessageAttributeValue{
		"k": {DataType: aws.String("String"), StringValue: aws.String("v")},
	}

	_, err := d.cloud.Queues.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &d.url, MessageBody: &body, MessageAttributes: attributes,
	})
	wantCode(t, err, badValue)

	half := body[:1<<19+1]
	_, err = d.cloud.Queues.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
		QueueUrl: &d.url, Entries: []sqstypes.SendMessageBatchRequestEntry{
			{Id: aws.String("1"), MessageBody: &half}, {Id: aws.String("2"), MessageBody: &half},
		},
	})
	wantCode(t, err, "AWS.SimpleQueueService.BatchRequestTooLong")
	d.want()
}

func TestBatch_invalidEntries_areRejected(t *testing.T) {
	t.Parallel()

	ids := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = strconv.Itoa(i)
		}

		return out
	}
	tests := map[string]struct {
		queue string
		ids   []string
		want  string
	}{
		"ten":           {"work", ids(10), ""},
		"eleven":        {"work", ids(11), "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"},
		"none":          {"work", nil, "AWS.SimpleQueueService.EmptyBatchRequest"},
		"same id":       {"work", []string{"a", "b", "a"}, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"},
		"bad id":        {"work", []string{"a b"}, "AWS.SimpleQueueService.InvalidBatchEntryId"},
		"long id":       {"work", []string{strings.Repeat("i", 81)}, "AWS.SimpleQueueService.InvalidBatchEntryId"},
		"unknown queue": {"none", ids(1), "AWS.SimpleQueueService.NonExistentQueue"},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := simaws.New()
			c.Queues.Create("work", simaws.QueueConfig{})

			url := "sim://" + tt.queue
			sends := []sqstypes.SendMessageBatchRequestEntry{}
			deletes := []sqstypes.DeleteMessageBatchRequestEntry{}
			changes := []sqstypes.ChangeMessageVisibilityBatchRequestEntry{}

			for _, id := range tt.ids {
				sends = append(sends, sqstypes.SendMessageBatchRequestEntry{Id: &id, MessageBody: &id})
				deletes = append(deletes, sqstypes.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: &id})
				changes = append(changes,
					sqstypes.ChangeMessageVisibilityBatchRequestEntry{Id: &id, ReceiptHandle: &id})
			}

			_, err := c.Queues.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: sends})
			wantCode(t, err, tt.want)

			deleted, err := c.Queues.DeleteMessageBatch(t.Context(),
				&sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: deletes})
			wantCode(t, err, tt.want)

			changed, err := c.Queues.ChangeMessageVisibilityBatch(t.Context(),
				&sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: changes})
			wantCode(t, err, tt.want)

			if tt.want == "" && (len(deleted.Failed) != len(tt.ids) || len(changed.Failed) != len(tt.ids)) {
				t.Fatal("invalid receipts were accepted")
			}
		})
	}
}

func TestBatch_expiredReceipt_failsOnlyItsEntry(t *testing.T) {
	t.Parallel()

	d := newInbox(t)
	d.sendTo("a", "a1")
	d.sendTo("b", "b1")

	ms := d.want("a1", "b1")
	changed, err := d.cloud.Queues.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: &d.url, Entries: []sqstypes.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("1"), ReceiptHandle: ms[0].ReceiptHandle},
			{Id: aws.String("2"), ReceiptHandle: ms[1].ReceiptHandle, VisibilityTimeout: 60},
		},
	})
	wantCode(t, err, "")

	deleted, err := d.cloud.Queues.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{
		QueueUrl: &d.url, Entries: []sqstypes.DeleteMessageBatchRequestEntry{
			{Id: aws.String("1"), ReceiptHandle: ms[0].ReceiptHandle}, {
				Id: aws.String("2"), ReceiptHandle: ms[1].ReceiptHandle,
			},
		},
	})
	wantCode(t, err, "")

	if len(changed.Successful) != 2 || len(deleted.Successful) != 1 || *deleted.Failed[0].Id != "1" ||
		*deleted.Failed[0].Code != badValue {
		t.Fatalf("%+v %+v", changed, deleted)
	}

	d.want("a1")
}
