package meter

import (
	"fmt"
	"strings"

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

// observe reads a call. Of one that it does not know, the name is counted, and that nobody knows what is billed.
func observe(input, output any, err error) observed {
	for _, read := range []func(input, output any, err error) (observed, bool){ofTable, ofQueues, ofOthers} {
		if o, ok := read(input, output, err); ok {
			return o
		}
	}
	return observed{kind: Kind{Call: nameOf(input)}, count: Count{Unpriced: 1}}
}

// services are the names of services by those of their packages in the SDK.
var services = map[string]string{"dynamodb": "DynamoDB", "sqs": "SQS", "scheduler": "Scheduler", "lambda": "Lambda", "s3": "S3", "ssm": "SSM"}

// nameOf is the service and the operation of an input of the SDK: of a *dynamodb.ScanInput it is "DynamoDB.Scan".
func nameOf(input any) string {
	service, operation, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", input), "*"), "Input"), ".")
	if known := services[service]; known != "" {
		service = known
	}
	return service + "." + operation
}

// ofOthers: calls to Scheduler are free, what fires is billed; a query's invocation is one. A schedule's message, and a question, say whose they are.
func ofOthers(input, _ any, _ error) (observed, bool) {
	o := observed{kind: Kind{Call: nameOf(input)}}
	switch in := input.(type) {
	case *scheduler.CreateScheduleInput:
		o.whose = targetOwner(in.Target)
	case *scheduler.UpdateScheduleInput:
		o.whose = targetOwner(in.Target)
	case *scheduler.DeleteScheduleInput: // its name is a digest
	case *lambda.InvokeInput:
		question := string(in.Payload)
		o.count.Usage, o.whose = pricing.Usage{pricing.Invocations: 1}, []owner{{message: &question}}
	default:
		return o, false
	}
	return o, true
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
