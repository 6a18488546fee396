package meter

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/pricing"
)

// Kind is which call was made, to what, and for whom.
type Kind struct {
	// Call is the service and the operation, such as "DynamoDB.PutItem".
	Call string
	// Queue is "fifo" or "standard" of a call to SQS; empty of others.
	Queue string
	// Instance is the instance that the call was made for; empty where the call does not say.
	Instance string
}

// Count is what calls of a kind add up to.
type Count struct {
	// Calls is how many requests were sent: a batch is one, each retry is one more. Calls for several instances are shared by them in equal
	// parts.
	Calls float64
	// Entries is how many items or messages they carried.
	Entries float64
	// Bytes is the bodies of the requests, and of the answers where their length is known.
	Bytes float64
	// Failed is how many of the calls came back with an error.
	Failed float64
	// Usage is what AWS bills.
	Usage pricing.Usage
	// Unpriced is how many of the calls the meter does not know: what AWS bills for them is not in Usage.
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

// Counts are counts by kind.
type Counts map[Kind]Count

// add adds a count to a kind.
func (c Counts) add(k Kind, n *Count, share float64) {
	sum := c[k]
	sum.add(n, share)
	c[k] = sum
}

// Of are the counts of one instance.
func (c Counts) Of(instance string) Counts {
	of := Counts{}
	for k, n := range c {
		if k.Instance == instance {
			of[k] = n
		}
	}
	return of
}

// ByCall are the counts of all instances together.
func (c Counts) ByCall() Counts {
	by := Counts{}
	for k, n := range c {
		k.Instance = ""
		by.add(k, &n, 1)
	}
	for k, n := range by { // shares of a call add up to one but for the last bits
		n.Calls, n.Entries, n.Failed = whole(n.Calls), whole(n.Entries), whole(n.Failed)
		by[k] = n
	}
	return by
}

func whole(x float64) float64 {
	const fine = 1e6
	return math.Round(x*fine) / fine
}

// Unpriced are the names of the calls of which nobody knows what AWS bills, in order.
func (c Counts) Unpriced() []string {
	names := map[string]bool{}
	for k, n := range c {
		if n.Unpriced > 0 {
			names[k.Call] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Usage is what AWS bills for all of them.
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

// Meter counts calls. It is safe for concurrent use. The zero value is not ready: New makes one.
type Meter struct {
	mu     sync.Mutex
	counts Counts
	owners map[string]string // the instances of executions that were seen
}

// New makes a meter that has counted nothing.
func New() *Meter { return &Meter{counts: Counts{}, owners: map[string]string{}} }

// Counts returns what was counted since New or the last Reset.
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

// Reset forgets what was counted.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = Counts{}
}

// Observe counts a call by its SDK input and output, for who sees calls that no SDK client makes. sent and received are the bytes of its bodies; 0
// where they are not known.
func (m *Meter) Observe(input, output any, err error, sent, received int64) {
	o := observe(input, output, err)
	o.count.Calls, o.count.Bytes = 1, float64(sent+received)
	if err != nil {
		o.count.Failed = 1
	}
	m.note(&o)
}

// note adds a call to what was counted.
func (m *Meter) note(o *observed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	instances := m.instances(o.whose)
	for _, id := range instances {
		o.kind.Instance = id
		m.counts.add(o.kind, &o.count, 1/float64(len(instances)))
	}
}
