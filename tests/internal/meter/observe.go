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

// observation is a call with its cost and its owners.
type observation struct {
	kind   Kind
	count  Count
	owners []owner
}

// observe returns the observation of a call. An unknown call counts as unpriced.
func observe(input, output any, err error) observation {
	type observer = func(input, output any, err error) (observation, bool)
	for _, observe := range []observer{observeTable, observeQueue, observeOther} {
		if o, ok := observe(input, output, err); ok {
			return o
		}
	}
	return observation{kind: Kind{Call: nameOf(input)}, count: Count{Unpriced: 1}}
}

// services maps the SDK packages of services to the names of the services.
var services = map[string]string{
	"dynamodb": "DynamoDB", "sqs": "SQS", "scheduler": "Scheduler", "lambda": "Lambda", "s3": "S3", "ssm": "SSM",
}

// nameOf returns the service and the operation of an SDK input: "DynamoDB.Scan" for a *dynamodb.ScanInput.
func nameOf(input any) string {
	name := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", input), "*"), "Input")
	service, operation, _ := strings.Cut(name, ".")
	if known := services[service]; known != "" {
		service = known
	}
	return service + "." + operation
}

// observeOther observes calls to Scheduler, which are free, and queries, which are Lambda invocations. The messages of
// schedules and the queries name their owners.
func observeOther(input, _ any, _ error) (observation, bool) {
	o := observation{kind: Kind{Call: nameOf(input)}}
	switch in := input.(type) {
	case *scheduler.CreateScheduleInput:
		o.owners = targetOwner(in.Target)
	case *scheduler.UpdateScheduleInput:
		o.owners = targetOwner(in.Target)
	case *scheduler.DeleteScheduleInput: // the name of a schedule is a digest
	case *lambda.InvokeInput:
		query := string(in.Payload)
		o.count.Usage, o.owners = pricing.Usage{pricing.Invocations: 1}, []owner{{message: &query}}
	default:
		return o, false
	}
	return o, true
}

// withCapacity returns an input that requests the consumed capacity, if the service supports that.
func withCapacity(input any) any {
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

// observeQueue observes calls to SQS, which bills a request per 64 KB.
func observeQueue(input, output any, _ error) (observation, bool) {
	switch in := input.(type) {
	case *sqs.SendMessageBatchInput:
		bytes, owners := 0, make([]owner, 0, len(in.Entries))
		for i := range in.Entries {
			e := &in.Entries[i]
			bytes += messageBytes(e.MessageBody, e.MessageAttributes)
			owners = append(owners, owner{message: e.MessageBody})
		}
		return queueCall("SendMessageBatch", in.QueueUrl, len(in.Entries), bytes, owners), true
	case *sqs.ReceiveMessageInput:
		out, _ := output.(*sqs.ReceiveMessageOutput)
		bytes, owners := 0, []owner{}
		if out != nil {
			for i := range out.Messages {
				bytes += messageBytes(out.Messages[i].Body, out.Messages[i].MessageAttributes)
				owners = append(owners, owner{message: out.Messages[i].Body})
			}
		}
		return queueCall("ReceiveMessage", in.QueueUrl, len(owners), bytes, owners), true
	case *sqs.DeleteMessageBatchInput:
		return queueCall("DeleteMessageBatch", in.QueueUrl, len(in.Entries), 0, nil), true
	case *sqs.ChangeMessageVisibilityBatchInput:
		return queueCall("ChangeMessageVisibilityBatch", in.QueueUrl, len(in.Entries), 0, nil), true
	case *sqs.GetQueueAttributesInput:
		return queueCall("GetQueueAttributes", in.QueueUrl, 0, 0, nil), true
	default:
		return observation{}, false
	}
}
