// Package simaws simulates DynamoDB, SQS, EventBridge Scheduler and some calls of S3 in memory, with the types of the
// AWS SDK. Tests and simulations run the real provider on it without a network.
//
// It follows AWS where emulators do not:
//
//   - A transaction is all or nothing, with a reason for each item.
//   - A FIFO queue rejects an expired receipt.
//   - A message group is blocked while one of its messages is in flight.
//   - A failed condition consumes write units.
//
// Lost responses, throttling, conflicts, stale reads, duplicates and reordering happen on AWS only sometimes. Tests
// produce them with an [Interceptor], [Table.Lag], [Queues.Disorder] and [Schedules.Disorder].
//
// All times come from the clock of the [Cloud]. With the default clock, a Cloud that is created in a testing/synctest
// bubble uses the virtual time of the bubble.
package simaws

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
)

// Cloud simulates one account: a table, its queues, its schedules, and the event source mappings between queues and
// functions. All methods of a Cloud and of its parts are safe for concurrent use.
type Cloud struct {
	// Table handles the DynamoDB calls.
	Table *Table
	// Queues handles the SQS calls.
	Queues *Queues
	// Schedules handles the calls of EventBridge Scheduler.
	Schedules *Schedules
	// Bucket handles the S3 calls.
	Bucket *Bucket

	now       func() time.Time
	intercept Interceptor
	calls     atomic.Int64
	usage     usage
	changed   chan struct{}
	inFlight  atomic.Int64

	mu       sync.RWMutex
	mappings []*mapping
}

// Call is a request to the Cloud, as an [Interceptor] receives it.
type Call struct {
	// Service is "DynamoDB", "SQS", "Scheduler" or "S3", or "Lambda" for operations of an event source mapping.
	Service string
	// Operation is the SDK's name of the call, such as "PutItem". The Lambda operations are "Invoke", with the batch as
	// []types.Message, and "DeleteMessageBatch", with which the mapping deletes messages.
	Operation string
	// Input is the SDK's input struct, such as *dynamodb.PutItemInput. It belongs to the caller. Do not change it.
	Input any
	// Number counts the calls of all services from 1, in order of arrival.
	Number int64
	// Queue is the URL of the mapping's queue for a Lambda operation. It is empty for other calls.
	Queue string
}

// Interceptor runs before every call. It calls next to run the call. If it returns an error without calling next, the
// request never arrived or was rejected. If it returns an error after next, the response was lost. It may block until
// ctx ends. It cannot turn a failed call into a success: if next returns an error, the call fails. The interceptor must
// be safe for concurrent use.
type Interceptor func(ctx context.Context, c Call, next func() error) error

// Option configures a Cloud.
type Option func(*settings)

type settings struct {
	now       func() time.Time
	intercept Interceptor
	table     TableConfig
}

// WithClock sets the source of time. The default is time.Now. Long polls and [Cloud.Serve] wait with real timers, whose
// durations are calculated from this clock. Use [Cloud.Step] with a clock that does not advance.
func WithClock(now func() time.Time) Option {
	return func(s *settings) { s.now = now }
}

// WithInterceptor sets the interceptor of all calls. A later option replaces an earlier one.
func WithInterceptor(i Interceptor) Option {
	return func(s *settings) { s.intercept = i }
}

// WithTable describes the table. The default is a table of any name with partition key "pk", sort key "sk" and no
// indexes.
func WithTable(c TableConfig) Option {
	return func(s *settings) { s.table = c }
}

// New creates an empty Cloud. It panics if the description of a table is inconsistent.
func New(opts ...Option) *Cloud {
	s := settings{table: TableConfig{PartitionKey: "pk", SortKey: "sk"}}
	s.now = time.Now //nolint:forbidigo // the default clock
	for _, o := range opts {
		o(&s)
	}

	c := &Cloud{now: s.now, intercept: s.intercept, changed: make(chan struct{}, 1)}
	c.Table = newTable(c, s.table)
	c.Bucket = &Bucket{cloud: c, objects: map[string]object{}}
	c.Queues = &Queues{cloud: c, byName: map[string]*queue{}}
	c.Schedules = &Schedules{
		cloud: c, groups: map[string]map[string]*schedule{defaultGroup: {}},
		disorder: ScheduleDisorder{LateTo: precision},
	}

	return c
}

// nanos returns the time of the Cloud's clock in nanoseconds since 1970.
func (c *Cloud) nanos() int64 { return c.now().UnixNano() }

// errSkipped reports an interceptor that did not call next and returned no error.
var errSkipped = errors.New("simaws: the interceptor neither called next nor failed")

// do counts a call, runs the call inside the interceptor, and wraps its error like the SDK.
func do[Out any](ctx context.Context, c *Cloud, op operation, in any, run func() (*Out, error)) (*Out, error) {
	number := c.count(op)
	if err := ctx.Err(); err != nil {
		return nil, op.wrap(&aws.RequestCanceledError{Err: err})
	}

	if c.intercept == nil {
		out, err := run()
		if err != nil {
			return nil, op.wrap(err)
		}

		return out, nil
	}

	var out *Out

	err := c.through(ctx, op, number, in, func() (err error) {
		out, err = run()

		return err
	})
	if err != nil {
		return nil, op.wrap(err)
	}

	return out, nil
}

// through runs a call inside the interceptor. The interceptor cannot hide the error of the call, or skip the call
// without an error.
func (c *Cloud) through(ctx context.Context, op operation, number int64, in any, run func() error) error {
	result := errSkipped
	service, name, _ := strings.Cut(op.String(), ".")

	err := c.intercept(ctx, Call{Service: service, Operation: name, Input: in, Number: number, Queue: mappedQueue(ctx)},
		func() error {
			result = run()

			return result
		})
	if err != nil {
		return err
	}

	return result
}

// wrap returns an error in the form in which an SDK client returns it, so that callers must use errors.As.
func (o operation) wrap(err error) error {
	service, name, _ := strings.Cut(o.String(), ".")

	return &smithy.OperationError{ServiceID: service, OperationName: name, Err: err}
}
