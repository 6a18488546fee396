// Package meter counts the AWS calls of a program by kind and by instance, with the bytes that they transfer and the
// units that AWS bills.
//
// Add a Meter to the configuration of SDK clients. It observes each request that they send, including retries. DynamoDB
// reports the consumed capacity, which the meter requests with ReturnConsumedCapacity. The meter calculates the
// capacity of writes whose condition failed, because AWS bills them without reporting it. A Meter is for measurements:
// it stores an entry for each kind of call and each instance.
package meter

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/pricing"
)

// Kind identifies a kind of call.
type Kind struct {
	// Call is the service and the operation, such as "DynamoDB.PutItem".
	Call string
	// Queue is the type of the queue of an SQS call, "fifo" or "standard". It is empty for other services.
	Queue string
	// Instance is the ID of the instance for which the call was made. It is empty if the call does not name one.
	Instance string
}

// Count is the sum of the calls of one kind.
type Count struct {
	// Calls is the number of requests. A batch is one request, and each retry is another one. Calls for several
	// instances are divided equally among them.
	Calls float64
	// Entries is the number of items or messages in the requests.
	Entries float64
	// Bytes is the size of the request bodies, and of the response bodies if it is known.
	Bytes float64
	// Failed is the number of calls that returned an error.
	Failed float64
	// Usage holds the units that AWS bills.
	Usage pricing.Usage
	// Unpriced is the number of calls that the meter cannot price. Usage does not include them.
	Unpriced float64
}

func (c *Count) add(o *Count, share float64) {
	c.Calls += o.Calls * share
	c.Entries += o.Entries * share
	c.Bytes += o.Bytes * share
	c.Failed += o.Failed * share
	c.Unpriced += o.Unpriced * share
	if c.Usage == nil {
		c.Usage = pricing.Usage{}
	}
	c.Usage.Add(o.Usage, share)
}

// Counts holds the counts by kind.
type Counts map[Kind]Count

// add adds a count to a kind.
func (c Counts) add(k Kind, n *Count, share float64) {
	sum := c[k]
	sum.add(n, share)
	c[k] = sum
}

// Of returns the counts of one instance.
func (c Counts) Of(instance string) Counts {
	of := Counts{}
	for k, n := range c {
		if k.Instance == instance {
			of[k] = n
		}
	}
	return of
}

// ByCall returns the counts of all instances together.
func (c Counts) ByCall() Counts {
	by := Counts{}
	for k, n := range c {
		k.Instance = ""
		by.add(k, &n, 1)
	}
	for k, n := range by { // the shares of a call add up to 1, except for rounding errors
		n.Calls, n.Entries, n.Failed = whole(n.Calls), whole(n.Entries), whole(n.Failed)
		by[k] = n
	}
	return by
}

func whole(x float64) float64 {
	const fine = 1e6
	return math.Round(x*fine) / fine
}

// Unpriced returns the sorted names of the calls that the meter cannot price.
func (c Counts) Unpriced() []string {
	names := map[string]bool{}
	for k, n := range c {
		if n.Unpriced > 0 {
			names[k.Call] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Usage returns the units that AWS bills for all calls.
func (c Counts) Usage() pricing.Usage {
	sum := pricing.Usage{}
	for _, n := range c {
		sum.Add(n.Usage, 1)
	}
	for i, q := range sum {
		sum[i] = whole(q)
	}
	return sum
}

// Meter counts calls. It is safe for concurrent use. Create it with New.
type Meter struct {
	mu     sync.Mutex
	counts Counts
	owners map[string]string // the instances of known executions
}

// New returns a meter without counts.
func New() *Meter { return &Meter{counts: Counts{}, owners: map[string]string{}} }

// Counts returns the counts since New or the last Reset.
func (m *Meter) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(Counts, len(m.counts))
	for k, n := range m.counts {
		n.Usage = maps.Clone(n.Usage)
		all[k] = n
	}
	return all
}

// Reset removes all counts.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = Counts{}
}

// Observe counts a call by its SDK input and output. Use it for calls that are not made by an SDK client. sent and
// received are the sizes of the request and response bodies in bytes, or 0 if unknown.
func (m *Meter) Observe(input, output any, err error, sent, received int64) {
	o := observe(input, output, err)
	o.count.Calls, o.count.Bytes = 1, float64(sent+received)
	if err != nil {
		o.count.Failed = 1
	}
	m.add(&o)
}

// add adds a call to the counts.
func (m *Meter) add(o *observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	instances := m.instances(o.owners)
	for _, id := range instances {
		o.kind.Instance = id
		m.counts.add(o.kind, &o.count, 1/float64(len(instances)))
	}
}
