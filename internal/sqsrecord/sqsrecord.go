// Package sqsrecord decodes SQS messages to records of a provider.
package sqsrecord

import (
	"strconv"
	"time"

	"github.com/perdure/perdure/provider"
)

// Decode returns the record of an SQS message with its system attributes. It uses ApproximateReceiveCount,
// SentTimestamp, SequenceNumber and MessageGroupId. It ignores the group of a message of a standard queue, which does
// not order messages.
func Decode(id, lock, body string, attributes map[string]string) provider.Record {
	r := provider.Record{
		ID: id, ReceiptHandle: lock, Body: body, ReceiveCount: 1,
		SentAt: parseSentTimestamp(attributes["SentTimestamp"]), Sequence: attributes["SequenceNumber"],
	}
	if n, err := strconv.Atoi(attributes["ApproximateReceiveCount"]); err == nil && n > 0 {
		r.ReceiveCount = n
	}
	if r.Sequence != "" {
		r.Group = attributes["MessageGroupId"]
	}
	return r
}

// parseSentTimestamp parses milliseconds since 1970. It returns the zero time if the timestamp is invalid.
func parseSentTimestamp(timestamp string) time.Time {
	ms, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
