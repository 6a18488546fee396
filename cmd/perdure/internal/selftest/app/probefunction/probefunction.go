// Package probefunction is the Lambda function for checks of Lambda and its event source mappings. It does with each
// message what the body requests, and records it in a table.
package probefunction

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/provider/dynamo"
)

// TableVariable is the environment variable with the name of the table for records. Other functions do not have it.
const TableVariable = "SELFTEST_TABLE"

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
	// timeout of Visibility seconds unless it is 0. A message whose first receive ran no code does not fail.
	Failure    Failure `json:"failure,omitempty"`
	Visibility int32   `json:"visibility,omitempty"`
	// Delete means that the function deletes the message itself.
	Delete bool `json:"delete,omitempty"`
	// Duration is the time that the function takes for the message.
	Duration time.Duration `json:"duration,omitempty"`
	// Padding enlarges the message. The function ignores it.
	Padding string `json:"padding,omitempty"`
}

// Record describes a receive of a message. It has no padding.
type Record struct {
	Task

	MessageID string `json:"messageID"`
	// Invocation is the request ID, and Version the version of the function. Receives is the receive count.
	Invocation string `json:"invocation"`
	Version    string `json:"version,omitempty"`
	Receives   int    `json:"receives"`
	// FirstReceivedAt is the time of the first receive, by the clock of SQS.
	FirstReceivedAt time.Time `json:"firstReceivedAt"`
	StartedAt       time.Time `json:"startedAt"`
	EndedAt         time.Time `json:"endedAt"`
}

// Partition returns the partition key of the records of a check. Their sort keys are in the order of StartedAt, and the
// attribute value has the record in JSON.
func Partition(check string) string { return prefix + check }

// prefix is the prefix of the partition keys that the function may put.
const prefix = "records-"

// Partitions is a pattern of the partition keys that the function may put.
const Partitions = prefix + "*"

// Call is a direct invocation.
type Call struct {
	// UntilDeadline is the time before the deadline at which the function responds, unless it is nil. A negative one is
	// after the deadline.
	UntilDeadline *time.Duration `json:"untilDeadline,omitempty"`
	// Quotes is the number of quotation marks in the response.
	Quotes int `json:"quotes,omitempty"`
	// Count starts a goroutine that counts ticks for a minute, also when the function has responded. A process starts
	// it once.
	Count bool `json:"count,omitempty"`
	// Duration is the time that the function takes.
	Duration time.Duration `json:"duration,omitempty"`
	// Partitions are partition keys of items that the function puts into the table, in a transaction if there are two.
	Partitions []string `json:"partitions,omitempty"`
	// Line is a line that the function logs, before the Duration.
	Line string `json:"line,omitempty"`
	// Padding is ignored.
	Padding string `json:"padding,omitempty"`
}

// Response is the response to a Call.
type Response struct {
	// Process identifies the process. Now is its time at the response.
	Process string    `json:"process"`
	Now     time.Time `json:"now"`
	// Remaining is the time until the deadline at the start.
	Remaining time.Duration `json:"remaining"`
	// FirstTicks and Ticks are the number of ticks at the start and at the end.
	FirstTicks int64 `json:"firstTicks"`
	Ticks      int64 `json:"ticks"`
	// Error is the error of the put or the transaction, and Code its code.
	Error string `json:"error,omitempty"`
	Code  string `json:"code,omitempty"`
	Text  string `json:"text,omitempty"`
}

// Request is a request of an HTTP API or a function URL, in payload format 2.0. It is also the body of the response.
type Request struct {
	RouteKey       string         `json:"routeKey,omitempty"`
	RawPath        string         `json:"rawPath,omitempty"`
	RequestContext RequestContext `json:"requestContext,omitzero"`
}

// StreamPath and a number are the path of a request whose response is a stream with this number of bytes. It requires a
// function URL with the invoke mode RESPONSE_STREAM.
const StreamPath = "/stream/"

// RequestContext has the domain name to which a request was sent.
type RequestContext struct {
	DomainName string `json:"domainName,omitempty"`
}

// Event is an event of the function: messages of a queue, a Request or a Call.
type Event struct {
	events.SQSEvent
	Request

	Call *Call `json:"call,omitempty"`
}

// Function is the function.
type Function struct {
	Table     dynamo.TableAPI
	Queues    dynamo.QueueAPI
	TableName string
	// Version is the version of the function.
	Version string
	Log     io.Writer

	process  string
	counting sync.Once
	ticks    atomic.Int64
}

// Tick is the time between two ticks.
const Tick = 100 * time.Millisecond

// count counts ticks for a minute.
func (f *Function) count() {
	for range time.Minute / Tick {
		time.Sleep(Tick)
		f.ticks.Add(1)
	}
}

// Start runs the function on Lambda. It does not return. The settings are those of the environment, because
// config.LoadDefaultConfig would enlarge the worker function, which has the same binary.
func Start() {
	env, err := config.NewEnvConfig()
	if err != nil {
		log.Fatalf("load AWS settings: %v", err)
	}
	cfg := aws.Config{
		Region: env.Region, ConfigSources: []any{env},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return env.Credentials, nil
		}),
	}
	if env.BaseEndpoint != "" {
		cfg.BaseEndpoint = &env.BaseEndpoint
	}
	clients := dynamo.FromConfig(cfg)
	f := &Function{
		Table: clients.Table, Queues: clients.Queues, TableName: os.Getenv(TableVariable),
		Version: lambdacontext.FunctionVersion, Log: os.Stdout,
	}
	lambda.Start(f.Handle)
}

// Handle handles an event. Calls are not concurrent, as on Lambda. Messages may be.
func (f *Function) Handle(ctx context.Context, e *Event) (any, error) {
	if e.Call != nil {
		return f.call(ctx, e.Call), nil
	}
	if e.RawPath == "" {
		return f.handleMessages(ctx, e.Records)
	}
	if size, streams := strings.CutPrefix(e.RawPath, StreamPath); streams {
		return stream(size)
	}
	return respond(&e.Request)
}

// stream returns a stream with a number of bytes.
func stream(size string) (*events.LambdaFunctionURLStreamingResponse, error) {
	n, err := strconv.Atoi(size)
	if err != nil {
		return nil, fmt.Errorf("size of the stream: %w", err)
	}
	return &events.LambdaFunctionURLStreamingResponse{Body: strings.NewReader(strings.Repeat("x", n))}, nil
}

// respond returns the response to a request.
func respond(r *Request) (*events.APIGatewayV2HTTPResponse, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return &events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Body: string(body)}, nil
}

func (f *Function) call(ctx context.Context, c *Call) *Response {
	if f.process == "" {
		f.process = rand.Text()
	}
	deadline, _ := ctx.Deadline()
	r := &Response{
		Process: f.process, Remaining: time.Until(deadline), Text: strings.Repeat(`"`, c.Quotes),
		FirstTicks: f.ticks.Load(),
	}
	if c.UntilDeadline != nil {
		time.Sleep(time.Until(deadline) - *c.UntilDeadline) // Lambda ends the process, not the context
	}
	if c.Count {
		f.counting.Do(func() { go f.count() })
	}
	if c.Line != "" {
		fmt.Fprintln(f.Log, c.Line)
	}
	time.Sleep(c.Duration)
	if len(c.Partitions) > 0 {
		if err := f.put(ctx, c.Partitions); err != nil {
			r.Error = err.Error()
			if e, ok := errors.AsType[smithy.APIError](err); ok {
				r.Code = e.ErrorCode()
			}
		}
	}
	r.Now, r.Ticks = time.Now(), f.ticks.Load()
	return r
}

// put puts items into the table, in a transaction if there are several.
func (f *Function) put(ctx context.Context, partitions []string) error {
	puts := make([]types.TransactWriteItem, len(partitions))
	for i, key := range partitions {
		puts[i].Put = &types.Put{
			TableName: &f.TableName, Item: map[string]types.AttributeValue{"pk": text(key), "sk": text("put")},
		}
	}
	if len(puts) > 1 {
		_, err := f.Table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: puts})
		return err
	}
	_, err := f.Table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &f.TableName, Item: puts[0].Put.Item})
	return err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

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

// Attributes of messages that the function requires: milliseconds since 1970, and a number.
const (
	AttributeFirst = string(sqstypes.MessageSystemAttributeNameApproximateFirstReceiveTimestamp)
	AttributeCount = string(sqstypes.MessageSystemAttributeNameApproximateReceiveCount)
)

// handle processes a message. It returns how the message fails, or "".
func (f *Function) handle(ctx context.Context, m *events.SQSMessage) (Failure, error) {
	r := Record{MessageID: m.MessageId, Version: f.Version, StartedAt: time.Now()}
	if err := json.Unmarshal([]byte(m.Body), &r.Task); err != nil {
		return "", fmt.Errorf("decode message %s: %w", m.MessageId, err)
	}
	r.Padding = ""
	first, err := strconv.ParseInt(m.Attributes[AttributeFirst], 10, 64)
	if err == nil {
		r.Receives, err = strconv.Atoi(m.Attributes[AttributeCount])
	}
	if err != nil {
		return "", fmt.Errorf("attributes of message %s: %w", m.MessageId, err)
	}
	r.FirstReceivedAt = time.UnixMilli(first)
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
	return failure, f.record(ctx, &r)
}

// settle deletes a message, or sets its visibility timeout, if its task requests it.
func (f *Function) settle(ctx context.Context, t *Task, failure Failure, receipt *string) error {
	var rejected []sqstypes.BatchResultErrorEntry
	var err error
	switch {
	case t.Delete:
		var out *sqs.DeleteMessageBatchOutput
		if out, err = f.Queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
			QueueUrl: &t.QueueURL,
			Entries:  []sqstypes.DeleteMessageBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: receipt}},
		}); err == nil {
			rejected = out.Failed
		}
	case t.Visibility > 0 && failure != "":
		var out *sqs.ChangeMessageVisibilityBatchOutput
		if out, err = f.Queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: &t.QueueURL, Entries: []sqstypes.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("0"), ReceiptHandle: receipt, VisibilityTimeout: t.Visibility},
			},
		}); err == nil {
			rejected = out.Failed
		}
	}
	if len(rejected) > 0 {
		err = errors.New(aws.ToString(rejected[0].Code))
	}
	if err != nil {
		return fmt.Errorf("message %s of %s: %w", t.Name, t.Check, err)
	}
	return nil
}

// record stores a record.
func (f *Function) record(ctx context.Context, r *Record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if _, err := f.Table.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &f.TableName, Item: map[string]types.AttributeValue{
			"pk": text(Partition(r.Check)), "value": text(string(value)),
			"sk": text(fmt.Sprintf("%020d-%s-%d", r.StartedAt.UnixNano(), r.MessageID, r.Receives)),
		},
	}); err != nil {
		return fmt.Errorf("store record: %w", err)
	}
	return nil
}
