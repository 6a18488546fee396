package simaws

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// SendMessage sends one message.
func (q *Queues) SendMessage(
	ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageOutput, error) {
	return do(ctx, q.cloud, opSendMessage, in, func() (*sqs.SendMessageOutput, error) {
		to, err := q.find(in.QueueUrl)
		if err != nil {
			return nil, err
		}

		e := outgoing{
			in.MessageBody, in.MessageGroupId, in.MessageDeduplicationId, in.DelaySeconds, in.MessageAttributes,
			in.MessageSystemAttributes,
		}
		if err := e.check(to); err != nil {
			return nil, err
		}

		to.mu.Lock()
		defer to.mu.Unlock()

		id, sequence := e.put(to)

		return &sqs.SendMessageOutput{MessageId: aws.String(id), SequenceNumber: optional(sequence)}, nil
	})
}

// SendMessageBatch sends up to 10 messages. Failed lists the messages that were rejected, with their errors.
func (q *Queues) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	return do(ctx, q.cloud, opSendMessageBatch, in, func() (*sqs.SendMessageBatchOutput, error) {
		to, err := q.find(in.QueueUrl)
		if err != nil {
			return nil, err
		}

		err = checkBatch(in.Entries, func(e sqstypes.SendMessageBatchRequestEntry) *string { return e.Id })
		if err != nil {
			return nil, err
		}

		entries, err := outgoingBatch(in.Entries)
		if err != nil {
			return nil, err
		}

		out := &sqs.SendMessageBatchOutput{Successful: make([]sqstypes.SendMessageBatchResultEntry, 0, len(entries))}

		to.mu.Lock() // no receive can split the batch, so its delivery is deterministic
		defer to.mu.Unlock()

		for i := range entries {
			if err := entries[i].check(to); err != nil {
				out.Failed = append(out.Failed, failed(in.Entries[i].Id, err))

				continue
			}

			id, sequence := entries[i].put(to)
			out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{
				Id: in.Entries[i].Id, MessageId: aws.String(id), SequenceNumber: optional(sequence),
			})
		}

		return out, nil
	})
}

func outgoingBatch(in []sqstypes.SendMessageBatchRequestEntry) ([]outgoing, error) {
	entries := make([]outgoing, len(in))
	size := 0

	for i, e := range in {
		entries[i] = outgoing{
			e.MessageBody, e.MessageGroupId, e.MessageDeduplicationId, e.DelaySeconds, e.MessageAttributes,
			e.MessageSystemAttributes,
		}
		size += entries[i].size()
	}

	if size > maxMessageSize {
		return nil, &sqstypes.BatchRequestTooLong{
			Message: aws.String("Batch requests cannot be longer than " + strconv.Itoa(maxMessageSize) +
				" bytes. You have sent " + strconv.Itoa(size) + " bytes."),
			ErrorCodeOverride: sqsCode("BatchRequestTooLong"),
		}
	}

	return entries, nil
}

// outgoing is a message of a sender, single or in a batch.
type outgoing struct {
	body          *string
	group         *string
	deduplication *string
	delay         int32
	attributes    map[string]sqstypes.MessageAttributeValue
	system        map[string]sqstypes.MessageSystemAttributeValue
}

// size returns the size that counts towards 1 MiB: the body, and the names, types and values of the attributes.
func (e *outgoing) size() int {
	size := len(aws.ToString(e.body))
	for name, v := range e.attributes {
		size += len(name) + len(aws.ToString(v.DataType)) + len(aws.ToString(v.StringValue)) + len(v.BinaryValue)
	}

	return size
}

func tooLong(limit int) error {
	return &smithy.GenericAPIError{
		Code: invalidParameterValue, Fault: smithy.FaultClient,
		Message: "One or more parameters are invalid. Reason: Message must be shorter than " +
			strconv.Itoa(limit) + " bytes.",
	}
}

// check rejects messages that the queue does not accept. It does not check the size.
func (e *outgoing) check(q *queue) error {
	switch {
	case aws.ToString(e.body) == "":
		return missingParameter("MessageBody")
	case !isAllowed(*e.body):
		return &sqstypes.InvalidMessageContents{
			Message: aws.String("Invalid characters found. Valid unicode characters are " +
				"#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"),
		}
	case e.delay < 0 || e.delay > maxDelay:
		return invalidParameter(strconv.Itoa(int(e.delay)), "DelaySeconds", "DelaySeconds must be >= 0 and <= 900")
	case e.group != nil && !isIdentifier(*e.group):
		return badIdentifier(*e.group, "MessageGroupId")
	case e.size() > q.MaximumMessageSize:
		return tooLong(q.MaximumMessageSize)
	}

	if q.fifo {
		return e.checkFIFO()
	}

	if e.deduplication != nil {
		return invalidParameter(*e.deduplication, "MessageDeduplicationId",
			"The request include parameter that is not valid for this queue type")
	}

	return nil
}

func (e *outgoing) checkFIFO() error {
	switch {
	case e.group == nil:
		return missingParameter("MessageGroupId")
	case e.deduplication == nil:
		return &smithy.GenericAPIError{
			Code: invalidParameterValue, Fault: smithy.FaultClient,
			Message: "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId " +
				"provided explicitly",
		}
	case !isIdentifier(*e.deduplication):
		return badIdentifier(*e.deduplication, "MessageDeduplicationId")
	case e.delay != 0:
		return invalidParameter(strconv.Itoa(int(e.delay)), "DelaySeconds",
			"The request include parameter that is not valid for this queue type")
	}

	return nil
}

// put puts the message into a queue, which must be locked.
func (e *outgoing) put(to *queue) (id, sequence string) {
	return to.put(content{
		body: *e.body, group: aws.ToString(e.group), deduplication: aws.ToString(e.deduplication),
		attributes: maps.Clone(e.attributes), trace: aws.ToString(e.system["AWSTraceHeader"].StringValue),
	}, time.Duration(e.delay)*time.Second)
}

func badIdentifier(value, parameter string) error {
	return invalidParameter(value, parameter,
		parameter+" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
}

// isIdentifier reports whether SQS accepts a text as a group ID or deduplication ID.
func isIdentifier(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}

	return s != "" && len(s) <= maxIdentifier
}

// isAllowed reports whether SQS accepts a text as the body of a message. It returns false for invalid UTF-8, which SQS
// would change.
func isAllowed(body string) bool {
	if !utf8.ValidString(body) {
		return false
	}

	for i := range len(body) {
		if c := body[i]; c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}

	return !strings.Contains(body, "\uFFFE") && !strings.Contains(body, "\uFFFF")
}

// checkBatch rejects an invalid batch.
func checkBatch[E any](entries []E, id func(E) *string) error {
	if len(entries) == 0 {
		return &sqstypes.EmptyBatchRequest{
			Message:           aws.String("There should be at least one entry in the request."),
			ErrorCodeOverride: sqsCode("EmptyBatchRequest"),
		}
	}

	if len(entries) > maxBatch {
		return &sqstypes.TooManyEntriesInBatchRequest{
			Message: aws.String("Maximum number of entries per request are 10. You have sent " +
				strconv.Itoa(len(entries)) + "."),
			ErrorCodeOverride: sqsCode("TooManyEntriesInBatchRequest"),
		}
	}

	for i, e := range entries {
		if !isEntryID(aws.ToString(id(e))) {
			return &sqstypes.InvalidBatchEntryId{
				Message: aws.String("A batch entry id can only contain alphanumeric characters, hyphens and " +
					"underscores. It can be at most 80 letters long."),
				ErrorCodeOverride: sqsCode("InvalidBatchEntryId"),
			}
		}

		for _, earlier := range entries[:i] {
			if *id(earlier) == *id(e) {
				return &sqstypes.BatchEntryIdsNotDistinct{
					Message:           aws.String("Id " + *id(e) + " repeated."),
					ErrorCodeOverride: sqsCode("BatchEntryIdsNotDistinct"),
				}
			}
		}
	}

	return nil
}

func isEntryID(id string) bool {
	for i := range len(id) {
		if c := id[i]; !isLetter(c) && c != '-' && (c < '0' || c > '9') {
			return false
		}
	}

	return id != "" && len(id) <= maxBatchEntryID
}

// failed returns the result of a failed entry of a batch, with the name of its error.
func failed(id *string, err error) sqstypes.BatchResultErrorEntry {
	out := sqstypes.BatchResultErrorEntry{Id: id, SenderFault: true, Message: aws.String(err.Error())}

	if api, ok := errors.AsType[smithy.APIError](err); ok {
		out.Code = aws.String(strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService."))
		out.Message = aws.String(api.ErrorMessage())
	}

	return out
}

// optional returns a pointer to a text, or nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}

	return &s
}
