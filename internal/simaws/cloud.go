// Package simaws is DynamoDB, SQS, EventBridge Scheduler and the few calls of S3 in memory, in the types of the AWS SDK, so that tests and
// simulations run the real provider without a network.
//
// It follows AWS where the emulators do not: transactions are all or nothing with a reason for each item, an expired
// receipt is refused by a FIFO queue, a message group blocks while one of its messages is in flight, a failed condition
// costs its write units. What AWS does only at times (lost responses, throttling, conflicts, stale reads, duplicates,
// reordering) is produced on demand: by an [Interceptor], [Table.Lag], [Queues.Disorder] and [Schedules.Disorder].
//
// Every time comes from the clock of the [Cloud]. With the default clock a Cloud that is made inside a testing/synctest
// bubble lives in the virtual time of that bubble.
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

// Cloud is one account: a table, its queues, its schedules and the event source mappings that join queues to
// functions. All methods of a Cloud and of its parts are safe for concurrent use.
type Cloud struct {
	// Table serves the DynamoDB calls.
	Table *Table
	// Queues serves the SQS calls.
	Queues *Queues
	// Schedules serves the calls of EventBridge Scheduler.
	Schedules *Schedules
	// Bucket serves the S3 calls.
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

// Call is one request on its way into the Cloud, as an [Interceptor] sees it.
type Call struct {
	// Service is "DynamoDB", "SQS", "Scheduler", "S3", or "Lambda" for what an event source mapping does by itself.
	Service string
	// Operation is the SDK's name of the call, such as "PutItem". The Lambda operations are "Invoke", with the batch
	// as []types.Message, and "DeleteMessageBatch", the mapping's own delete.
	Operation string
	// Input is the SDK's input struct, such as *dynamodb.PutItemInput. It belongs to the caller: read it only.
	Input any
	// Number counts the calls from 1 in order of arrival, over all services.
	Number int64
	// Queue is the URL of the queue whose mapping makes an operation of Lambda; empty of others.
	Queue string
}

// Interceptor stands before every call. Calling next runs the call; returning an error without calling next is a
// request that never arrived or was refused, returning one after next is a lost response. It may block, until ctx
// ends. It cannot turn a failed call into a success: the error of next wins over a nil.
// It is called from many goroutines at once.
type Interceptor func(ctx context.Context, c Call, next func() error) error

// Option sets up a Cloud.
type Option func(*settings)

type settings struct {
	now       func() time.Time
	intercept Interceptor
	table     TableConfig
}

// WithClock sets the source of time; the default is time.Now. Waiting (long polls and [Cloud.Serve]) is by real timers
// whose length is reckoned from this clock, so a clock that stands still belongs with [Cloud.Step].
func WithClock(now func() time.Time) Option {
	return func(s *settings) { s.now = now }
}

// WithInterceptor sets the one interceptor of all calls.
func WithInterceptor(i Interceptor) Option {
	return func(s *settings) { s.intercept = i }
}

// WithTable describes the table; the default is partition key "pk" and sort key "sk" under any name, without indexes.
func WithTable(c TableConfig) Option {
	return func(s *settings) { s.table = c }
}

// New makes an empty Cloud. It panics when a table's description contradicts itself.
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
		cloud: c, groups: map[string]map[string]*schedule{defaultGroup: {}}, disorder: ScheduleDisorder{LateTo: precision},
	}

	return c
}

// nanos is the present of the Cloud's clock.
func (c *Cloud) nanos() int64 { return c.now().UnixNano() }

// errSkipped is the fault of an interceptor, not of a caller.
var errSkipped = errors.New("simaws: the interceptor neither called next nor failed")

// do counts a call, takes it through the interceptor and wraps its error as the SDK does.
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

// through runs a call inside the interceptor, and does not let it hide the call's error or its absence.
func (c *Cloud) through(ctx context.Context, op operation, number int64, in any, run func() error) error {
	result := errSkipped
	service, name, _ := strings.Cut(op.String(), ".")

	err := c.intercept(ctx, Call{Service: service, Operation: name, Input: in, Number: number, Queue: mappedQueue(ctx)}, func() error {
		result = run()

		return result
	})
	if err != nil {
		return err
	}

	return result
}

// wrap gives an error the form in which a client of the SDK returns it, so that callers must use errors.As.
func (o operation) wrap(err error) error {
	service, name, _ := strings.Cut(o.String(), ".")

	return &smithy.OperationError{ServiceID: service, OperationName: name, Err: err}
}
