// Package probefunction is the Lambda function for checks of Lambda and its event source mappings. It does with each
// message what the body requests, and records it in a table.
package probefunction

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider/dynamo"
)

// TableVariable is the environment variable with the name of the table for records. Other functions do not have it.
const TableVariable = "PERDURE_SELFTEST_TABLE"

// Failure is the way in which a message fails.
type Failure string

// The failures.
const (
	// Reported means that the response lists the message in batchItemFailures.
	Reported Failure = "reported"
	// Unknown means that the response lists an ID that no message has.
	Unknown Failure = "unknown"
	// Returned means that the function returns an error.
	Returned Failure = "returned"
)

// Task is the body of a message.
type Task struct {
	// Check and Name identify the message. QueueURL is its queue. In a FIFO queue, its message group is Group, or Name
	// if Group is empty.
	Check    string `json:"check"`
	Name     string `json:"name"`
	QueueURL string `json:"queueURL"`
	Group    string `json:"group,omitempty"`
	// Failure is that of the first receive. Later ones succeed. Before the failure, the function sets a visibility
	// timeout of Visibility seconds unless it is 0.
	Failure    Failure `json:"failure,omitempty"`
	Visibility int32   `json:"visibility,omitempty"`
	// Delete means that the function deletes the message itself.
	Delete bool `json:"delete,omitempty"`
	// Duration is the time that the function takes for the message.
	Duration time.Duration `json:"duration,omitempty"`
}

// Record describes a receive of a message.
type Record struct {
	Task

	// Invocation is the request ID. Receives is the receive count.
	Invocation string    `json:"invocation"`
	Receives   int       `json:"receives"`
	StartedAt  time.Time `json:"startedAt"`
	EndedAt    time.Time `json:"endedAt"`
}

// Partition returns the partition key of the records of a check. Their sort keys are in the order of StartedAt, and the
// attribute value has the record in JSON.
func Partition(check string) string { return "records-" + check }

// Call is a direct invocation.
type Call struct {
	// UntilDeadline is the time before the deadline at which the function responds, unless it is nil. A negative one is
	// after the deadline.
	UntilDeadline *time.Duration `json:"untilDeadline,omitempty"`
	// Quotes is the number of quotation marks in the response.
	Quotes int `json:"quotes,omitempty"`
	// Background starts a goroutine that ends after this time, and continues when the function has responded.
	Background time.Duration `json:"background,omitempty"`
	// Join waits until the goroutine of an earlier call has ended.
	Join bool `json:"join,omitempty"`
}

// Response is the response to a Call.
type Response struct {
	// Process identifies the process. Now is its time at the response.
	Process string    `json:"process"`
	Now     time.Time `json:"now"`
	// Remaining is the time until the deadline at the start.
	Remaining time.Duration `json:"remaining"`
	// Joined reports that the goroutine of an earlier call has ended.
	Joined bool   `json:"joined"`
	Text   string `json:"text,omitempty"`
}

// Event is an event of the function: messages of a queue, or a Call.
type Event struct {
	events.SQSEvent

	Call *Call `json:"call,omitempty"`
}

// Function is the function.
type Function struct {
	Table     dynamo.TableAPI
	Queues    dynamo.QueueAPI
	TableName string

	process    string
	background chan struct{} // closed when the last goroutine has ended; nil if there is none
}

// Start runs the function on Lambda. It does not return.
func Start() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("load AWS settings: %v", err)
	}
	clients := dynamo.FromConfig(cfg)
	f := &Function{Table: clients.Table, Queues: clients.Queues, TableName: os.Getenv(TableVariable)}
	lambda.Start(f.Handle)
}

// Handle handles an event. Calls are not concurrent, as on Lambda. Messages may be.
func (f *Function) Handle(ctx context.Context, e *Event) (any, error) {
	if e.Call != nil {
		return f.call(ctx, e.Call), nil
	}
	return f.handleMessages(ctx, e.Records)
}

func (f *Function) call(ctx context.Context, c *Call) *Response {
	if f.process == "" {
		f.process = rand.Text()
	}
	deadline, _ := ctx.Deadline()
	r := &Response{Process: f.process, Remaining: time.Until(deadline), Text: strings.Repeat(`"`, c.Quotes)}
	if c.UntilDeadline != nil {
		time.Sleep(time.Until(deadline) - *c.UntilDeadline) // Lambda ends the process, not the context
	}
	if c.Join && f.background != nil {
		select {
		case <-f.background:
			r.Joined = true
		case <-ctx.Done():
		}
	}
	if c.Background > 0 {
		ended := make(chan struct{})
		f.background = ended
		time.AfterFunc(c.Background, func() { close(ended) })
	}
	r.Now = time.Now()
	return r
}

// handleMessages processes messages in their order. After a failure, all later messages of its group fail too.
func (f *Function) handleMessages(ctx context.Context, messages []events.SQSMessage) (*events.SQSEventResponse, error) {
	response := &events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	var failedGroups []string
	var returned error
	for i := range messages {
		m := &messages[i]
		group := m.Attributes[string(sqstypes.MessageSystemAttributeNameMessageGroupId)]
		failure, err := f.handle(ctx, m)
		if err != nil {
			return nil, err
		}
		if group != "" && slices.Contains(failedGroups, group) {
			failure = Reported
		}
		id := m.MessageId
		switch failure {
		case Returned:
			returned = errors.New("requested by the message")
			continue
		case Unknown:
			id = "unknown"
		case Reported:
			failedGroups = append(failedGroups, group)
		default:
			continue
		}
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return response, returned
}

// handle processes a message. It returns how the message fails, or "".
func (f *Function) handle(ctx context.Context, m *events.SQSMessage) (Failure, error) {
	r := Record{StartedAt: time.Now()}
	if err := json.Unmarshal([]byte(m.Body), &r.Task); err != nil {
		return "", fmt.Errorf("decode message %s: %w", m.MessageId, err)
	}
	var err error
	r.Receives, err = strconv.Atoi(m.Attributes[string(sqstypes.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil {
		return "", fmt.Errorf("receive count of message %s: %w", m.MessageId, err)
	}
	if call, ok := lambdacontext.FromContext(ctx); ok {
		r.Invocation = call.AwsRequestID
	}
	time.Sleep(r.Duration)
	failure := r.Failure
	if r.Receives > 1 {
		failure = ""
	}
	if err := f.settle(ctx, &r.Task, failure, &m.ReceiptHandle); err != nil {
		return "", err
	}
	r.EndedAt = time.Now()
	return failure, f.record(ctx, &r, m.MessageId)
}

// settle deletes a message, or sets its visibility timeout, if its task requests it.
func (f *Function) settle(ctx context.Context, t *Task, failure Failure, receipt *string) (err error) {
	switch {
	case t.Delete:
		_, err = f.Queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
			QueueUrl: &t.QueueURL,
			Entries:  []sqstypes.DeleteMessageBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: receipt}},
		})
	case t.Visibility > 0 && failure != "":
		_, err = f.Queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: &t.QueueURL, Entries: []sqstypes.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("0"), ReceiptHandle: receipt, VisibilityTimeout: t.Visibility},
			},
		})
	}
	if err != nil {
		return fmt.Errorf("message %s of %s: %w", t.Name, t.Check, err)
	}
	return nil
}

// record stores a record.
func (f *Function) record(ctx context.Context, r *Record, messageID string) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	if _, err := f.Table.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &f.TableName, Item: map[string]types.AttributeValue{
			"pk": text(Partition(r.Check)), "value": text(string(value)),
			"sk": text(fmt.Sprintf("%020d-%s-%d", r.StartedAt.UnixNano(), messageID, r.Receives)),
		},
	}); err != nil {
		return fmt.Errorf("store record: %w", err)
	}
	return nil
}
