package deadletters

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/wire"
)

// FuzzDecode checks that any message of a dead-letter queue is listed with its body, so that an operator can delete it.
func FuzzDecode(f *testing.F) {
	f.Add(`{"v":1,"kind":"eventRaised","instanceId":"a","name":"e"}`, "1767355200000", "3", "42", "group", "poison")
	f.Add(`{"v":9,"kind":1}`, "-9223372036854775808", "x", "", "", "")
	f.Add("\xff", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, body, sentAt, receives, sequence, group, reason string) {
		d := decode("inbox", &types.Message{
			Body: &body, Attributes: map[string]string{
				"SentTimestamp": sentAt, "ApproximateReceiveCount": receives, "SequenceNumber": sequence,
				"MessageGroupId": group,
			},
			MessageAttributes: map[string]types.MessageAttributeValue{
				sqsqueue.AttrReason: {StringValue: aws.String(reason)},
			},
		})
		if d.Record.Body != body || d.Queue != "inbox" || d.Reason != reason || d.Subject != wire.SubjectOf(body) ||
			!d.SentAt.Equal(d.Record.SentAt) || (sequence == "" && d.Record.Group != "") {
			t.Errorf("%+v", d)
		}
	})
}
