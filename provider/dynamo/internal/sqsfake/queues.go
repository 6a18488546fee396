// Package sqsfake provides an SQS client for tests that records messages and fails on request.
package sqsfake

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Response returns the response to a request.
type Response func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error)

// Queues records the requests of SendMessageBatch, and returns the responses of Respond. Without Respond, all requests
// succeed. Other calls panic.
type Queues struct {
	*sqs.Client

	Sent    []*sqs.SendMessageBatchInput
	Respond Response
}

// SendMessageBatch implements the call of sqs.Client.
func (q *Queues) SendMessageBatch(
	_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	q.Sent = append(q.Sent, in)
	if q.Respond == nil {
		return &sqs.SendMessageBatchOutput{}, nil
	}
	return q.Respond(in)
}

// Bodies returns the bodies of the messages of a request.
func Bodies(in *sqs.SendMessageBatchInput) (all []string) {
	for _, e := range in.Entries {
		all = append(all, *e.MessageBody)
	}
	return all
}

// Failing returns responses that reject the messages with these bodies. If permanent is true, SQS always rejects them.
func Failing(permanent bool, which ...string) Response {
	return func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		out := &sqs.SendMessageBatchOutput{}
		for _, e := range in.Entries {
			if slices.Contains(which, *e.MessageBody) {
				code := "InternalError"
				if permanent {
					code = "InvalidMessageContents"
				}
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{
					Id: e.Id, Code: &code, Message: aws.String("why"), SenderFault: permanent,
				})
			}
		}
		return out, nil
	}
}
