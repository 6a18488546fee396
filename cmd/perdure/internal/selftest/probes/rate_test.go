package probes

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/perdure/perdure/provider/dynamo"
)

// alteredQueues changes the result of sends and receives.
type alteredQueues struct {
	dynamo.QueueAPI

	send    func(in *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) error
	receive func(out *sqs.ReceiveMessageOutput)
}

func (q *alteredQueues) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	out, err := q.QueueAPI.SendMessageBatch(ctx, in, opts...)
	if err == nil && q.send != nil {
		err = q.send(in, out)
	}
	return out, err
}

func (q *alteredQueues) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	out, err := q.QueueAPI.ReceiveMessage(ctx, in, opts...)
	if err == nil && q.receive != nil {
		q.receive(out)
	}
	return out, err
}

func TestQueueProbes_queueDiffers_checkReportsIt(t *testing.T) {
	t.Parallel()
	refuse := func(every int64, code string) func(*sqs.SendMessageBatchInput, *sqs.SendMessageBatchOutput) error {
		var n atomic.Int64
		return func(*sqs.SendMessageBatchInput, *sqs.SendMessageBatchOutput) error {
			if n.Add(1)%every == 0 {
				return &smithy.GenericAPIError{Code: code, Message: "m"}
			}
			return nil
		}
	}
	received := false
	for want, c := range map[string]struct {
		check     string
		queues    alteredQueues
		undecided bool
	}{
		"an entry with a delay failed with NonExistentQueue (fault of the sender: true)": {
			check: "sqs-errors", queues: alteredQueues{
				send: func(_ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) error {
					for i := range out.Failed {
						if *out.Failed[i].Id == "2" {
							out.Failed[i].Code = aws.String("AWS.SimpleQueueService.NonExistentQueue")
						}
					}
					return nil
				},
			},
		},
		"an entry with a character failed with InvalidMessageContents (fault of the sender: false)": {
			check: "sqs-errors", queues: alteredQueues{
				send: func(_ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) error {
					out.Failed[0].SenderFault = false
					return nil
				},
			},
		},
		"an entry with a character failed with InternalError": {
			check: "sqs-errors", queues: alteredQueues{
				send: func(_ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) error {
					out.Failed[0].Code, out.Failed[0].SenderFault = aws.String("InternalError"), false
					return nil
				},
			}, undecided: true,
		},
		"all entries are accepted": {
			check: "sqs-errors", queues: alteredQueues{
				send: func(_ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) error {
					out.Failed = nil
					return nil
				},
			}, undecided: true,
		},
		"while another message of the group is in flight: message groups-": {
			check: "sqs-groups", queues: alteredQueues{receive: func(out *sqs.ReceiveMessageOutput) {
				if received {
					out.Messages = nil
				}
				received = received || len(out.Messages) > 0
			}},
		},
		"message groups-1 or groups-2 does not arrive": {
			check: "sqs-groups", queues: alteredQueues{receive: func(out *sqs.ReceiveMessageOutput) { out.Messages = nil }},
			undecided: true,
		},
		"this machine is too slow for 4s: 0 of 1000 sends": {
			check: "sqs-group-rate", queues: alteredQueues{
				send: func(*sqs.SendMessageBatchInput, *sqs.SendMessageBatchOutput) error {
					time.Sleep(400 * time.Millisecond)
					return nil
				},
			}, undecided: true,
		},
		"100 of 1000 sends to a group in 3.996s were throttled": {
			check: "sqs-group-rate", queues: alteredQueues{send: refuse(10, "RequestThrottled")},
		},
		"1000 of 1000 sends to a group in 3.996s were throttled": {
			check: "sqs-group-rate", queues: alteredQueues{
				send: func(_ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) error {
					out.Failed = []types.BatchResultErrorEntry{{Code: aws.String("ThrottlingException")}}
					return nil
				},
			},
		},
		"api error AccessDenied": {
			check: "sqs-group-rate", queues: alteredQueues{send: refuse(1, "AccessDenied")}, undecided: true,
		},
		"the valid entry failed with InvalidParameterValue": {
			check: "sqs-errors", queues: alteredQueues{
				send: func(_ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) error {
					out.Failed = append(out.Failed, types.BatchResultErrorEntry{
						Id: aws.String("0"), Code: aws.String("InvalidParameterValue"), SenderFault: true,
					})
					return nil
				},
			}, undecided: true,
		},
		"send: request send failed": {
			check: "sqs-errors", queues: alteredQueues{
				send: func(*sqs.SendMessageBatchInput, *sqs.SendMessageBatchOutput) error {
					return &smithyhttp.RequestSendError{Err: errors.New("reset")}
				},
			}, undecided: true,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			c.queues.QueueAPI = p.Queues
			p.Queues = &c.queues
			_, err := p.check(c.check).Run(t.Context())
			if _, open := errors.AsType[*UndecidedError](err); err == nil || open != c.undecided ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", c.check, err, want)
			}
		})
	}
}

func TestPacer_lateCall_doesNotMakeNextFaster(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	p := pacer{next: began, pause: time.Second}
	for i, c := range []struct{ at, want time.Duration }{
		{0, 0}, {0, time.Second}, {time.Minute, 0}, {time.Minute, time.Second},
	} {
		if got := p.wait(began.Add(c.at)); got != c.want {
			t.Errorf("call %d after %v waits for %v, want %v", i, c.at, got, c.want)
		}
	}
}
