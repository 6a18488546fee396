package simhub

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
)

// Order runs concurrent calls of a hub one at a time. Each AWS call of an invocation parks, and Next releases the first
// parked call. The names of invocations and the inputs of calls define the order. Concurrent work at one moment of
// virtual time therefore has the same order in each run. The hub must be in a testing/synctest bubble, and all
// goroutines of the bubble must be blocked when Next is called.
type Order struct {
	mu      sync.Mutex
	parked  []*turnstile  // in order of their names
	arrived chan struct{} // capacity 1
	over    chan struct{} // closed by end
}

// turnstile holds a parked call.
type turnstile struct {
	name string
	let  chan struct{}
}

func newOrder() *Order {
	return &Order{arrived: make(chan struct{}, 1), over: make(chan struct{})}
}

// interceptor parks the calls of invocations. inner, if not nil, runs around the call itself.
func (o *Order) interceptor(inner simaws.Interceptor) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		inv, ok := ctx.Value(invocationKey{}).(*invocation)
		switch {
		case ok && !inv.client:
			o.park(inv.name + " " + c.Operation + " " + keyOf(c.Input) + onBehalf(ctx))
		case ok && !isRead(c.Operation):
			o.park(inv.name + " " + c.Operation + " " + instanceFirst(c.Input))
		}
		if inner != nil {
			return inner(ctx, c, next)
		}
		return next()
	}
}

// isRead reports whether a call changes nothing. A sweep makes hundreds of concurrent reads before the write that
// depends on them, so that their order is irrelevant.
func isRead(operation string) bool {
	return operation == "Query" || operation == "GetItem" || operation == "GetQueueAttributes"
}

// instanceFirst returns the key of a call of a sweep, which makes the same call for many instances concurrently. Their
// instance IDs determine the order, because IDs of starts and executions are random.
func instanceFirst(input any) string {
	switch in := input.(type) {
	case *sqs.SendMessageBatchInput:
		bodies := make([]string, len(in.Entries))
		for i := range in.Entries {
			bodies[i] = *in.Entries[i].MessageBody // starts with its kind and the instance ID
		}
		return *in.QueueUrl + " " + strings.Join(bodies, " ")
	case *dynamodb.TransactWriteItemsInput:
		keys := strings.Split(strings.TrimSpace(transactionKey(in.TransactItems)), " ")
		slices.Sort(keys) // i#<instance> before x#<execution>
		return strings.Join(keys, " ")
	default:
		return keyOf(input)
	}
}

func (o *Order) park(name string) {
	t := &turnstile{name: name, let: make(chan struct{})}
	o.mu.Lock()
	at, _ := slices.BinarySearchFunc(o.parked, t, func(a, b *turnstile) int { return cmp.Compare(a.name, b.name) })
	o.parked = slices.Insert(o.parked, at, t)
	o.mu.Unlock()
	select {
	case o.arrived <- struct{}{}:
	default:
	}
	select {
	case <-t.let:
	case <-o.over:
	}
}

// Next releases the first parked call, and reports whether there was one.
func (o *Order) Next() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.arrived:
	default:
	}
	if len(o.parked) == 0 {
		return false
	}
	close(o.parked[0].let)
	o.parked = o.parked[1:]
	return true
}

// Arrived returns a channel on which a value arrives after a call has parked. Next discards the value.
func (o *Order) Arrived() <-chan struct{} { return o.arrived }

// end releases all parked and all later calls. It can be called repeatedly.
func (o *Order) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.over:
	default:
		close(o.over)
	}
}
