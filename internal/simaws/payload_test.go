package simaws_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

// named returns a message body of the given size that begins with name.
func named(name string, fill string, size int) string {
	return name + strings.Repeat(fill, size-len(name))
}

// names returns a response function that records each batch by the first letters of its bodies.
func (f *function) names(response func(ms []sqstypes.Message) []string) func(ms []sqstypes.Message) ([]string, error) {
	return func(ms []sqstypes.Message) ([]string, error) {
		var text strings.Builder
		for _, m := range ms {
			text.WriteByte((*m.Body)[0])
		}
		f.batches[len(f.batches)-1] = text.String()
		if response == nil {
			return nil, nil
		}
		return response(ms), nil
	}
}

func TestMapping_batchOverThePayloadLimit_isPassedInParts(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for name, c := range map[string]struct {
		fill  string
		size  int
		parts []string
	}{
		"messages at the limit":          {"x", limit, []string{"abcde", "fghij"}},
		"messages that double as JSON":   {`"`, limit, []string{"ab", "cd", "ef", "gh", "ij"}},
		"messages that fit":              {"x", 600 << 10, []string{"abcdefghij"}},
		"messages that fit, not as JSON": {`"`, 600 << 10, []string{"abcde", "fghij"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := bubble(t, "work", simaws.QueueConfig{VisibilityTimeout: 10 * time.Second})
				f := &function{}
				f.response = f.names(nil)
				d.cloud.Map(d.url, simaws.Mapping{Invoke: f.invoke})
				for _, letter := range "abcdefghij" {
					d.send(named(string(letter), c.fill, c.size))
				}
				drive(d.cloud)
				f.want(t, c.parts...)
				time.Sleep(time.Minute)
				drive(d.cloud)
				f.want(t, c.parts...)
			})
		})
	}
}

// The groups of a FIFO queue stay in order. Messages behind a failed message wait for its redelivery.
func TestMapping_failureInTheFirstPartOfAFIFOBatch_holdsTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := bubble(t, "inbox.fifo", simaws.QueueConfig{VisibilityTimeout: 10 * time.Second})
		f := &function{}
		failed := false
		f.response = f.names(func(ms []sqstypes.Message) []string {
			if failed {
				return nil
			}
			failed = true
			return []string{*ms[4].MessageId}
		})
		d.cloud.Map(d.url, simaws.Mapping{Invoke: f.invoke})
		for _, letter := range "abcdefghij" {
			_, err := d.cloud.Queues.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: &d.url, MessageBody: aws.String(named(string(letter), "x", 1<<20)),
				MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(string(letter)),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		drive(d.cloud)
		f.want(t, "abcde")
		time.Sleep(10 * time.Second)
		drive(d.cloud)
		f.want(t, "abcde", "efghi", "j")
	})
}
