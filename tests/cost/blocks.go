package cost

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/pricing"
)

// Block is a building block of orchestrations. Its cost is the difference of two shapes, or of one shape and other
// blocks.
type Block struct {
	Name string
	// More has Count blocks more than Less. Less is nil if More consists of the block and of those of Without.
	More, Less *Shape
	Count      int
	// Without are earlier blocks by name that each of the Count contains. WithoutOnce are contained in More once.
	Without, WithoutOnce []string
}

// The names of blocks that others refer to.
const (
	blockActivity = "activity"
	blockInline   = "inline activity"
	blockInstance = "instance that waits"
	blockEvent    = "external event from a client"
)

// Blocks are the building blocks of docs/operate/cost.md, in its order.
func Blocks() []Block {
	of := func(orchestration string, input any) *Shape {
		return &Shape{Name: fmt.Sprintf("%s %v", orchestration, input), Orchestration: orchestration, Input: input, Count: 1}
	}
	driven := func(s *Shape, name string, drive driver) *Shape {
		s.Name, s.Drive = s.Name+" "+name, drive
		return s
	}
	naps := func(n int, d time.Duration) *Shape { return of(napsName, nap{n, d}) }
	approvals := func(n int, d, after time.Duration) *Shape {
		return driven(of(approvalsName, nap{n, d}), fmt.Sprintf("after %v", after), raise(n, after))
	}
	freights := func(l load) *Shape { return of(freightName, l) }
	swept := func(n, instances, activities int) *Shape {
		s := of(keptName, activities)
		s.Name, s.AtOnce, s.Concurrency = fmt.Sprintf("%d sweeps, %d instances of %d", n, instances, activities), instances, 1
		s.Afterwards = sweep(n)
		return s
	}
	stored := of(keptName, 1)
	stagger := of(staggeredName, staggeredCount)
	stagger.Exclude = staggeredCount * apart
	atOnce := []string{blockInstance}
	fan := func(n int) Block {
		return Block{Name: fmt.Sprintf("activity in a fan-out of %d", n), More: of(fanName, n), Count: n, WithoutOnce: atOnce}
	}
	timer := func(name string, d time.Duration) Block {
		return Block{Name: "timer " + name, More: naps(3, d), Less: naps(1, d), Count: 2}
	}
	cancelled := func(name string, d, after time.Duration) Block {
		return Block{Name: "timer " + name, More: approvals(3, d, after), Less: approvals(1, d, after), Count: 2, Without: []string{blockEvent}}
	}
	return []Block{
		{Name: blockActivity, More: of(chainName, 11), Less: of(chainName, 1), Count: 10},
		{Name: blockInline, More: of(inlineName, 11), Less: of(inlineName, 1), Count: 10},
		{Name: blockInstance, More: of(chainName, 1), Count: 1, Without: []string{blockActivity}},
		{Name: "instance that never waits", More: of(inlineName, 1), Count: 1, Without: []string{blockInline}},
		fan(5), fan(10), fan(100), fan(1000),
		{Name: "activity in a fan-out, all end at different times", More: stagger, Count: staggeredCount, WithoutOnce: atOnce},
		{Name: "retry of an attempt", More: of(flakyName, 4), Less: of(flakyName, 1), Count: 3},
		{Name: blockEvent, More: driven(of(eventsName, 11), "", raise(11, time.Second)), Less: driven(of(eventsName, 1), "", raise(1, time.Second)), Count: 10},
		{Name: "event between instances", More: driven(of(senderName, 11), "", receive(11)), Less: driven(of(senderName, 1), "", receive(1)), Count: 10},
		{Name: "sub-orchestration", More: of(parentName, 4), Less: of(parentName, 1), Count: 3, Without: []string{blockActivity}},
		{Name: "query", More: driven(of(eventsName, 1), "10 queries", ask(10, 0)), Less: driven(of(eventsName, 1), "0 queries", ask(0, 0)), Count: 10},
		{Name: "update", More: driven(of(eventsName, 1), "10 updates", ask(0, 10)), Less: driven(of(eventsName, 1), "0 queries", ask(0, 0)), Count: 10},
		timer("up to 15 minutes", 10*time.Minute), timer("up to 30 minutes", 25*time.Minute), timer("longer", 2*time.Hour),
		cancelled("up to 15 minutes, cancelled", 10*time.Minute, time.Minute),
		cancelled("up to 30 minutes, cancelled", 30*time.Minute, time.Minute),
		cancelled("longer, cancelled in its first 15 minutes", 2*time.Hour, time.Minute),
		cancelled("longer, cancelled later", 4*time.Hour, time.Hour),
		{
			Name: "schedule run, up to 15 minutes apart", More: driven(of(inlineName, 1), "12 runs", repeat(12, "10 minutes", 10*time.Minute)),
			Less: driven(of(inlineName, 1), "2 runs", repeat(2, "10 minutes", 10*time.Minute)), Count: 10, Without: []string{blockInstance, blockActivity},
		},
		{
			Name: "schedule run, further apart", More: driven(of(inlineName, 1), "12 long runs", repeat(12, "2 hours", 2*time.Hour)),
			Less: driven(of(inlineName, 1), "2 long runs", repeat(2, "2 hours", 2*time.Hour)), Count: 10, Without: []string{blockInstance, blockActivity},
		},
		{Name: "KB of an activity's input", More: freights(load{10, 3000, 100}), Less: freights(load{10, 952, 100}), Count: 20},
		{Name: "KB of an activity's result", More: freights(load{10, 100, 3000}), Less: freights(load{10, 100, 952}), Count: 20},
		{Name: "KB of an instance's input", More: of(echoName, parcel{random(3000), 10}), Less: of(echoName, parcel{random(952), 10}), Count: 2},
		{Name: "KB of an instance's output", More: of(echoName, parcel{"", 3000}), Less: of(echoName, parcel{"", 952}), Count: 2},
		{Name: "retention of an instance", More: stored, Less: of(chainName, 1), Count: 1},
		{Name: "purge, each turn", More: swept(1, 1, 11), Less: swept(1, 1, 1), Count: 10},
		{Name: "purge, instance", More: swept(1, 21, 1), Less: swept(1, 1, 1), Count: 20},
		{Name: "sweep of an idle hub", More: swept(15, 1, 1), Less: swept(5, 1, 1), Count: 10},
		{Name: "order", More: driven(of(OrderName, 4), "", raise(1, time.Minute)), Count: 1},
	}
}

type driver = func(ctx context.Context, c *client.Client, id string) error

// staggeredCount is how many activities of a fan-out end one after the other.
const staggeredCount = 10

// minus subtracts another bill, multiplied by times.
func (b *Bill) minus(o *Bill, times float64) {
	for _, f := range billed {
		*f(b) -= *f(o) * times
	}
}

// over divides a bill.
func (b *Bill) over(n int) {
	for _, f := range billed {
		*f(b) /= float64(n)
	}
}

// billed are the parts of a bill.
var billed = []func(b *Bill) *float64{
	func(b *Bill) *float64 { return &b.Total }, func(b *Bill) *float64 { return &b.Reckoned },
	func(b *Bill) *float64 { return &b.Writes }, func(b *Bill) *float64 { return &b.Reads },
	func(b *Bill) *float64 { return &b.Sends }, func(b *Bill) *float64 { return &b.Receives },
	func(b *Bill) *float64 { return &b.Deletes }, func(b *Bill) *float64 { return &b.Requests },
	func(b *Bill) *float64 { return &b.Durations }, func(b *Bill) *float64 { return &b.Schedules },
	func(b *Bill) *float64 { return &b.WriteUnits }, func(b *Bill) *float64 { return &b.ReadUnits },
	func(b *Bill) *float64 { return &b.SQSRequests }, func(b *Bill) *float64 { return &b.Invocations },
	func(b *Bill) *float64 { return &b.GBSeconds }, func(b *Bill) *float64 { return &b.Stored },
}

// BillBlocks returns the bills of a million of each block. measure measures a shape.
func BillBlocks(blocks []Block, l *pricing.List, measure func(s *Shape) (*Measured, error)) ([]Bill, error) {
	measured := map[string]Bill{}
	bill := func(s *Shape) (Bill, error) {
		if b, ok := measured[s.Name]; ok {
			return b, nil
		}
		m, err := measure(s)
		if err != nil {
			return Bill{}, err
		}
		m.Instances = 1 // the bill is that of the shape
		measured[s.Name] = m.Bill(l)
		return measured[s.Name], nil
	}
	bills, named := make([]Bill, 0, len(blocks)), map[string]*Bill{}
	for i := range blocks {
		k := &blocks[i]
		b, err := bill(k.More)
		if err != nil {
			return nil, err
		}
		if k.Less != nil {
			less, err := bill(k.Less)
			if err != nil {
				return nil, err
			}
			b.minus(&less, 1)
		}
		for _, name := range k.WithoutOnce {
			b.minus(named[name], 1)
		}
		b.over(k.Count)
		for _, name := range k.Without {
			b.minus(named[name], 1)
		}
		b.Name, b.Of, b.Asked = k.Name, "", 0
		bills = append(bills, b)
		named[k.Name] = &bills[len(bills)-1]
	}
	return bills, nil
}
