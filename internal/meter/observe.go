package meter

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/pricing"
)

// observed is what a call says of itself.
type observed struct {
	kind  Kind
	count Count
	whose []owner
}

// observe reads a call. ok is false for one that nothing is known of.
func observe(input, output any, err error) (o observed, ok bool) {
	for _, read := range []func(input, output any, err error) (observed, bool){ofTable, ofQueues, ofOthers} {
		if o, ok := read(input, output, err); ok {
			return o, true
		}
	}
	return observed{}, false
}

// ofOthers: calls to Scheduler are free, what fires is billed; a query's invocation is one.
func ofOthers(input, _ any, _ error) (observed, bool) {
	switch input.(type) {
	case *scheduler.CreateScheduleInput:
		return observed{kind: Kind{Call: "Scheduler.CreateSchedule"}}, true
	case *scheduler.DeleteScheduleInput:
		return observed{kind: Kind{Call: "Scheduler.DeleteSchedule"}}, true
	case *lambda.InvokeInput:
		return observed{kind: Kind{Call: "Lambda.Invoke"}, count: Count{Usage: pricing.Usage{pricing.Invocations: 1}}}, true
	default:
		return observed{}, false
	}
}

// asking returns an input that asks what the call consumes, where the service can say that.
func asking(input any) any {
	const total = types.ReturnConsumedCapacityTotal
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		c := *in
		c.ReturnConsumedCapacity = total
		return &c
	case *dynamodb.PutItemInput:
		c := *in
		c.ReturnConsumedCapacity = total
		return &c
	case *dynamodb.UpdateItemInput:
		c := *in
		c.ReturnConsumedCapacity = total
		return &c
	case *dynamodb.DeleteItemInput:
		c := *in
		c.ReturnConsumedCapacity = total
		return &c
	case *dynamodb.QueryInput:
		c := *in
		c.ReturnConsumedCapacity = total
		return &c
	case *dynamodb.TransactWriteItemsInput:
		c := *in
		c.ReturnConsumedCapacity = total
		return &c
	default:
		return input
	}
}

// ofQueues: SQS bills a request by its 64 KB, whatever is in it.
func ofQueues(input, output any, _ error) (observed, bool) {
	switch in := input.(type) {
	case *sqs.SendMessageBatchInput:
		bytes, whose := 0, make([]owner, 0, len(in.Entries))
		for i := range in.Entries {
			e := &in.Entries[i]
			bytes += messageBytes(e.MessageBody, e.MessageAttributes)
			whose = append(whose, owner{message: e.MessageBody})
		}
		return queueCall("SendMessageBatch", in.QueueUrl, len(in.Entries), bytes, whose), true
	case *sqs.ReceiveMessageInput:
		out, _ := output.(*sqs.ReceiveMessageOutput)
		bytes, whose := 0, []owner{}
		if out != nil {
			for i := range out.Messages {
				bytes += messageBytes(out.Messages[i].Body, out.Messages[i].MessageAttributes)
				whose = append(whose, owner{message: out.Messages[i].Body})
			}
		}
		return queueCall("ReceiveMessage", in.QueueUrl, len(whose), bytes, whose), true
	case *sqs.DeleteMessageBatchInput:
		return queueCall("DeleteMessageBatch", in.QueueUrl, len(in.Entries), 0, nil), true
	case *sqs.ChangeMessageVisibilityBatchInput:
		return queueCall("ChangeMessageVisibilityBatch", in.QueueUrl, len(in.Entries), 0, nil), true
	case *sqs.GetQueueAttributesInput:
		return queueCall("GetQueueAttributes", in.QueueUrl, 0, 0, nil), true
	default:
		return observed{}, false
	}
}
