package cost

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/simsdk"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/internal/latency"
	"github.com/perdure/perdure/tests/internal/meter"
)

// Function has the usage of a function.
type Function struct {
	Invocations int
	// Duration is the duration of all invocations, each rounded up to a millisecond like in a bill of Lambda.
	Duration time.Duration
}

// Measured has the usage of all instances of a shape.
type Measured struct {
	Shape     Shape
	Instances int
	// Calls has the AWS calls of the functions and of the client.
	Calls meter.Counts
	// Received and Deleted are the SQS requests of the mappings.
	Received, Deleted pricing.Usage
	// Functions maps Orchestrator, Worker and Renewer to their usage.
	Functions map[string]*Function
	// Fired is the number of schedules that have fired.
	Fired float64
	// Stored is the growth of the table and its indexes, in bytes that DynamoDB bills.
	Stored float64
	// Estimated is the cost of the instances that their histories give, in dollars. It excludes the cost of children.
	Estimated float64
}

// Names of functions.
const (
	Orchestrator = "orchestrator"
	Worker       = "worker"
	Renewer      = "renewer"
)

// Memory is the memory of each function in the stack, in GB.
var Memory = map[string]float64{Orchestrator: 0.5, Worker: 0.25, Renewer: 0.25}

// OwnTime is the time of an invocation without the AWS calls that it waits for. OwnTime is an assumption, not a
// measurement on Lambda. A turn takes about 0.1 ms on a whole processor (docs/reference/benchmarks.md). A function with
// 512 MB has a third of a processor, and a function with 256 MB has a seventh.
var OwnTime = map[string]time.Duration{
	Orchestrator: time.Millisecond, Worker: 2 * time.Millisecond, Renewer: 2 * time.Millisecond,
}

// longest is the virtual time after which all instances of every shape have ended and the queues are empty.
const longest = 27 * time.Hour

// Measure runs a shape in the synctest bubble of its caller. It returns when the instances have ended and the queues
// are empty.
func Measure(ctx context.Context, s *Shape) (*Measured, error) {
	m := &Measured{
		Shape: *s, Instances: max(1, s.AtOnce), Received: pricing.Usage{}, Deleted: pricing.Usage{},
		Functions: map[string]*Function{Orchestrator: {}, Worker: {}, Renewer: {}},
	}
	counts := meter.New()
	w := &watcher{measured: m, calls: latency.Current().Intercept(latency.Means())}
	o := simhub.Options{
		Registry: Registry(), Concurrency: s.Concurrency, Logger: slog.New(slog.DiscardHandler), Intercept: w.intercept,
		Clients: func(c *simaws.Cloud) dynamo.Clients {
			cfg := simsdk.Config()
			counts.AddTo(&cfg)
			clients := simsdk.Clients(c, cfg)
			clients.Bucket = counts.Bucket(clients.Bucket)
			return clients
		},
	}
	if s.Cold {
		o.CacheBytes = -1
	}
	o.Sweep = s.Afterwards != nil // without it, the first sweep searches the retentions of a year
	h, err := simhub.New(o)
	if err != nil {
		return nil, fmt.Errorf("cost: %s: %w", s.Name, err)
	}
	defer h.Close()
	if err := begin(ctx, h, client.New(h.Provider)); err != nil {
		return nil, fmt.Errorf("cost: %s: %w", s.Name, err)
	}
	before := h.Cloud.Table.StoredBytes()
	counts.Reset()
	w.reset()
	if err := run(ctx, h, s, m.Instances, w); err != nil {
		return nil, fmt.Errorf("cost: %s: %w", s.Name, err)
	}
	if s.Afterwards != nil {
		counts.Reset()
		w.reset()
		if err := s.Afterwards(ctx, h, w.invoked); err != nil {
			return nil, fmt.Errorf("cost: %s: %w", s.Name, err)
		}
	}
	m.Stored = float64(h.Cloud.Table.StoredBytes() - before)
	m.Functions[Worker].Duration -= s.Exclude
	m.Calls = counts.Counts()
	if unpriced := m.Calls.Unpriced(); len(unpriced) > 0 {
		return nil, fmt.Errorf("cost: %s: no prices for the calls %v", s.Name, unpriced)
	}
	for i := range m.Instances {
		if s.Afterwards != nil {
			break // the instances may be gone
		}
		if in, err := h.Provider.ReadInstance(ctx, instanceID(i)); err != nil || in.Status != provider.StatusCompleted {
			return nil, fmt.Errorf("cost: %s: instance %d is %s: %w", s.Name, i, in.Status, err)
		}
		estimated, err := admin.New(h.Provider).EstimateCost(ctx, instanceID(i))
		if err != nil {
			return nil, fmt.Errorf("cost: %s: %w", s.Name, err)
		}
		m.Estimated += estimated.Dollars
	}
	m.Fired = m.callsOf("Scheduler.CreateSchedule") - m.callsOf("Scheduler.DeleteSchedule")
	return m, nil
}

// begin runs one instance before the measurement. A process reads the builds and the signing key once, and these reads
// are not part of the cost of an instance.
func begin(ctx context.Context, h *simhub.Hub, c *client.Client) error {
	if _, err := c.Start(ctx, chainName, 1, client.WithInstanceID("before")); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	h.ServeFor(ctx, time.Second)
	return nil
}

// run starts the instances, and returns when all of them have ended and the queues are empty. It makes no reads of its
// own.
func run(ctx context.Context, h *simhub.Hub, s *Shape, instances int, w *watcher) error {
	c := client.New(h.Provider, client.WithQuerier(&querier{h, w}))
	var started sync.WaitGroup
	errs := make([]error, instances)
	started.Go(func() { h.ServeFor(ctx, longest) })
	for i := range instances {
		started.Go(func() {
			id := instanceID(i)
			if _, errs[i] = c.Start(ctx, s.Orchestration, s.Input, client.WithInstanceID(id)); errs[i] == nil &&
				s.Drive != nil {
				errs[i] = s.Drive(ctx, c, id)
			}
		})
	}
	started.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("instance %d: %w", i, err)
		}
	}
	return nil
}

func instanceID(i int) string { return fmt.Sprintf("order-%05d", i) }

func (m *Measured) callsOf(call string) (n float64) {
	for k, c := range m.Calls {
		if k.Call == call {
			n += c.Calls
		}
	}
	return n
}

// watcher counts the requests of the mappings, and measures the durations of invocations.
type watcher struct {
	measured *Measured
	calls    simaws.Interceptor

	mu sync.Mutex
}

func (w *watcher) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.measured.Received)
	clear(w.measured.Deleted)
	for _, f := range w.measured.Functions {
		*f = Function{}
	}
}

func (w *watcher) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	if c.Service != "Lambda" {
		return w.calls(ctx, c, next)
	}
	_, billed := meter.QueueOf(c.Queue)
	if c.Operation == "DeleteMessageBatch" {
		w.mu.Lock()
		w.measured.Deleted[billed]++
		w.mu.Unlock()
		return next()
	}
	began := time.Now()
	err := next()
	name := FunctionOf(c.Queue)
	took := time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measured.Received[billed] += meter.Requests(bytesOf(c.Input))
	w.add(name, took)
	return err
}

// FunctionOf returns the name of the function that the mapping of a queue invokes.
func FunctionOf(queue string) string {
	switch kind, _ := meter.QueueOf(queue); {
	case kind == "fifo":
		return Orchestrator
	case strings.HasSuffix(queue, provider.QueueTimers):
		return Renewer
	default:
		return Worker
	}
}

// querier runs queries in the hub's orchestrator, and counts them as invocations of that function.
type querier struct {
	hub     *simhub.Hub
	watcher *watcher
}

func (q *querier) QueryInstance(ctx context.Context, r provider.QueryRequest) (json.RawMessage, error) {
	began := time.Now()
	answer, err := q.hub.QueryInstance(ctx, r)
	q.watcher.invoked(Orchestrator, time.Since(began))
	return answer, err
}

// invoked counts an invocation of a function.
func (w *watcher) invoked(name string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(name, took)
}

// add counts an invocation, rounded up to a millisecond. The caller holds the lock.
func (w *watcher) add(name string, took time.Duration) {
	f := w.measured.Functions[name]
	f.Invocations++
	f.Duration += time.Duration(math.Ceil(float64(took+OwnTime[name])/float64(time.Millisecond))) * time.Millisecond
}

func bytesOf(batch any) (n int) {
	ms, _ := batch.([]sqstypes.Message)
	for i := range ms {
		n += len(*ms[i].Body)
	}
	return n
}
