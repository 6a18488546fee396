package simaws

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// message is one copy of a message in a queue. Times are in nanoseconds since 1970.
type message struct {
	content

	id        uint64 // in order of arrival
	sequence  string // of FIFO queues
	sent      int64
	visibleAt int64
	// lease is the end of the twelve hours that begin when the message is received.
	lease         int64
	firstReceived int64
	receives      int
	source        string // the ARN of the source queue of a dead letter

	// Position of the message in a standard queue.
	rank  int64
	slot  int
	ready bool
}

// content is the part of a message that the sender sets.
type content struct {
	messageID     string
	body          string
	group         string
	deduplication string
	attributes    map[string]sqstypes.MessageAttributeValue
	trace         string
}

// before is the order of the heaps of a standard queue.
func (m *message) before(other *message) bool {
	if m.rank != other.rank {
		return m.rank < other.rank
	}

	return m.id < other.id
}

func (m *message) place(slot int) { m.slot = slot }

// inFlight reports whether a message was received and is still invisible.
func (m *message) inFlight(now int64) bool { return m.receives > 0 && m.visibleAt > now }

// delivery is a copy of a message at the time of a receive, because the message may change later.
type delivery struct {
	*content

	receipt       string
	sequence      string
	sent          int64
	firstReceived int64
	receives      int
	source        string
}

// Receipts have the form "<queue>/<message>/<receive>".
const receiptSeparator = "/"

func (q *queue) receipt(m *message) string {
	b := make([]byte, 0, 128) //nolint:mnd // enough for most names and two numbers
	b = append(b, q.name...)
	b = append(b, receiptSeparator...)
	b = strconv.AppendUint(b, m.id, 10)
	b = append(b, receiptSeparator...)

	return string(strconv.AppendInt(b, int64(m.receives), 10))
}

// parseReceipt parses a receipt of this queue.
func (q *queue) parseReceipt(receipt string) (id uint64, receives int, err error) {
	rest, ok := strings.CutPrefix(receipt, q.name+receiptSeparator)
	first, second, alsoOK := strings.Cut(rest, receiptSeparator)

	id, errID := strconv.ParseUint(first, 10, 64)

	receives, errReceives := strconv.Atoi(second)
	if !ok || !alsoOK || errID != nil || errReceives != nil {
		return 0, 0, badReceipt(receipt)
	}

	return id, receives, nil
}

// messageID returns the ID of the n-th message of a queue, in the format of SQS.
func (q *queue) messageID(n uint64) string {
	const form = "00000000-0000-4000-8000-000000000000"

	var id [len(form)]byte

	copy(id[:], form)
	putHex(id[:8], uint64(q.number))
	putHex(id[len(id)-12:], n)

	return string(id[:])
}

// putHex writes a number in hexadecimal digits, right-aligned over zeros.
func putHex(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0 && n > 0; i-- {
		b[i] = "0123456789abcdef"[n&0xf]
		n >>= 4
	}
}

// sequenceNumber returns an increasing number of 20 digits that exceeds uint64, like on AWS.
func sequenceNumber(n uint64) string {
	const none = "18800000000000000000"

	var text [len(none)]byte

	copy(text[:], none)

	for i := len(text) - 1; n > 0; i-- {
		text[i] = byte('0' + n%10)
		n /= 10
	}

	return string(text[:])
}

// selection is the set of attributes that a receiver requested.
type selection struct {
	all    bool
	system []string
	named  []string
}

func (s *selection) has(name string) bool {
	if s.all {
		return true
	}

	for _, wanted := range s.system {
		if wanted == name || wanted == "All" {
			return true
		}
	}

	return false
}

// message returns the delivery in the type of the SDK.
func (d *delivery) message(s *selection) sqstypes.Message {
	return sqstypes.Message{
		MessageId:         aws.String(d.messageID),
		ReceiptHandle:     aws.String(d.receipt),
		Body:              aws.String(d.body),
		Attributes:        d.systemAttributes(s),
		MessageAttributes: d.messageAttributes(s),
	}
}

func (d *delivery) systemAttributes(s *selection) map[string]string {
	if !s.all && len(s.system) == 0 {
		return nil
	}

	const most = 8

	out := make(map[string]string, most)
	set := func(name sqstypes.MessageSystemAttributeName, value string) {
		if value != "" && s.has(string(name)) {
			out[string(name)] = value
		}
	}

	set(sqstypes.MessageSystemAttributeNameApproximateReceiveCount, strconv.Itoa(d.receives))
	set(sqstypes.MessageSystemAttributeNameSentTimestamp, millis(d.sent))
	set(sqstypes.MessageSystemAttributeNameApproximateFirstReceiveTimestamp, millis(d.firstReceived))
	set(sqstypes.MessageSystemAttributeNameMessageGroupId, d.group)
	set(sqstypes.MessageSystemAttributeNameMessageDeduplicationId, d.deduplication)
	set(sqstypes.MessageSystemAttributeNameSequenceNumber, d.sequence)
	set(sqstypes.MessageSystemAttributeNameAWSTraceHeader, d.trace)
	set(sqstypes.MessageSystemAttributeNameDeadLetterQueueSourceArn, d.source)

	return out
}

func (d *delivery) messageAttributes(s *selection) map[string]sqstypes.MessageAttributeValue {
	if s.all {
		return d.attributes
	}

	var out map[string]sqstypes.MessageAttributeValue

	for name, v := range d.attributes {
		for _, wanted := range s.named {
			prefix, isPrefix := strings.CutSuffix(wanted, ".*")
			if wanted == name || wanted == "All" || wanted == ".*" || (isPrefix && strings.HasPrefix(name, prefix)) {
				if out == nil {
					out = map[string]sqstypes.MessageAttributeValue{}
				}

				out[name] = v
			}
		}
	}

	return out
}

func millis(nanos int64) string {
	return strconv.FormatInt(nanos/int64(time.Millisecond), 10)
}
