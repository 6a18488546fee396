package outbox

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
	"github.com/perdure/perdure/provider/outputs"
)

// An entry that SQS never accepts fails its output. The other entries are sent, including entries with a temporary
// error.
func TestR9_senderFault_failsOnlyItsOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &sqsfake.Queues{}
		q.Respond = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if len(q.Sent) > 1 {
				return &sqs.SendMessageBatchOutput{}, nil
			}
			return &sqs.SendMessageBatchOutput{Failed: []types.BatchResultErrorEntry{
				{Id: aws.String("0"), SenderFault: true, Code: aws.String("InvalidMessageContents")},
				{Id: aws.String("1"), Code: aws.String("InternalError")},
			}}, nil
		}
		ob := senderTo(q)
		refused, err := ob.SendOutputs(t.Context(), &outputs.Set{
			WorkItems: []provider.WorkItem{{ActivityID: 3, Queue: "default"}, {ActivityID: 4, Queue: "default"}},
		})
		if err != nil || len(refused) != 1 || refused[0].EventID != 3 || len(q.Sent) != 2 {
			t.Errorf("rejected %v, error %v, %d sends", refused, err, len(q.Sent))
		}
	})
}

// senderTo returns an outbox that sends work items to queues, and has the key of their tokens.
func senderTo(q *sqsfake.Queues) *Outbox {
	queue := sqsqueue.New(q, sqsqueue.Config{WorkQueues: map[string]string{"default": "u"}}, time.Now)
	keys := tokens.New(table.New(keyTable{}, "t"), "h", time.Now, nil)
	return New(Stores{
		Queue: queue, WorkQueues: workqueue.New(queue, nil, keys, nil, time.Now, nil),
		Timers: timers.New(nil, queue, nil, nil, timers.Config{Now: time.Now}),
	}, time.Now, nil)
}

// keyTable is a table with one signing key.
type keyTable struct{ table.API }

func (keyTable) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (
	*dynamodb.QueryOutput, error,
) {
	secret := base64.StdEncoding.EncodeToString(make([]byte, 32))
	return &dynamodb.QueryOutput{Items: []table.Item{{
		table.AttrSK: table.Str("key#0000000001"), "secret": table.Str(secret),
	}}}, nil
}

// SQS reports a misconfigured role, a disabled key or a throttled queue as a fault of the sender. An activity must not
// fail for such a reason. Only errors about the message itself are final.
func TestR9_eachErrorCodeOfSQS_onlyMessageErrorsAreFinal(t *testing.T) {
	t.Parallel()
	for code, forGood := range map[string]bool{
		"InvalidMessageContents": true, "InvalidParameterValue": true, "InvalidAttributeValue": true,
		"AWS.SimpleQueueService.InvalidMessageContents": true, "com.amazonaws.sqs#InvalidMessageContents": true,

		"AccessDenied": false, "AccessDeniedException": false, "InvalidClientTokenId": false, "RequestThrottled": false,
		"ThrottlingException": false,
		"OverLimit":           false, "KMS.AccessDeniedException": false, "KMS.DisabledException": false,
		"KMS.ThrottlingException": false,
		"KmsThrottled":            false, "InternalError": false, "ServiceUnavailable": false, "InvalidSecurity": false,
		"MissingParameter":                        false,
		"AWS.SimpleQueueService.NonExistentQueue": false, "AWS.SimpleQueueService.UnsupportedOperation": false,
		"SomethingNew": false, "": false,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				q := &sqsfake.Queues{Respond: func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
					out := &sqs.SendMessageBatchOutput{}
					for _, e := range in.Entries {
						if time.Since(began) < time.Hour && strings.Contains(*e.MessageBody, `"activityId":3`) {
							out.Failed = append(out.Failed, types.BatchResultErrorEntry{
								Id: e.Id, SenderFault: true, Code: &code,
							})
						}
					}
					return out, nil
				}}
				ob := senderTo(q)
				out := &outputs.Set{
					WorkItems: []provider.WorkItem{
						{ActivityID: 3, Queue: "default"}, {ActivityID: 4, Queue: "default"},
					},
				}
				refused, err := ob.SendOutputs(t.Context(), out)
				if forGood && (err != nil || len(refused) != 1 || refused[0].EventID != 3 || len(q.Sent) != 1) {
					t.Errorf("rejected %v, error %v, %d sends; want #3", refused, err, len(q.Sent))
				}
				if failed, ok := errors.AsType[*provider.Error](err); !forGood &&
					(!ok || !failed.Retryable || len(refused) > 0 || len(q.Sent) != awscall.MaxTries) {
					t.Errorf("rejected %v, error %v, %d sends; want a retryable error", refused, err, len(q.Sent))
				}
				time.Sleep(time.Hour)
				if refused, err := ob.SendOutputs(t.Context(), out); err != nil || len(refused) > 0 {
					t.Errorf("an hour later: rejected %v, error %v", refused, err)
				}
			})
		})
	}
}
