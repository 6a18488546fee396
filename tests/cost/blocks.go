package cost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/pricing"
)

// Block is a building block of orchestrations. Its cost is the difference between two shapes, or between one shape and
// other blocks.
type Block struct {
	Name string
	// More has Count blocks more than Less. Less is nil if More contains only these blocks and the blocks of
	// WithoutOnce.
	More, Less *Shape
	Count      int
	// With, Without and WithoutOnce are names of other blocks. One block contains the difference and the blocks of
	// With. The difference contains the blocks of Without, but the block does not. More contains the blocks of
	// WithoutOnce once.
	With, Without, WithoutOnce []string
	// Step is true for a block that is not on the page. Other blocks are calculated from it.
	Step bool
	// IsTimed is true if the fraction of a second in the due time of a timer affects the cost.
	IsTimed bool
}

// Names of blocks that other blocks or tests use.
const (
	BlockInstance  = "instance: start, first and last turn"
	BlockActivity  = "activity, one after another"
	BlockEvent     = "external event from a client"
	BlockCancelled = "timer up to 30 minutes, cancelled"
	BlockPurge     = "retention and purge, instance"
	BlockPurgeTurn = "retention and purge, each further turn"
	// BlockSweep is one sweep of a hub that has no work.
	BlockSweep = "sweep"
	// BlockOrder and BlockOrderPurge are the example of docs/operate/cost.md.
	BlockOrder      = "order"
	BlockOrderPurge = "purge of an order"

	BlockKilobyte = "KB of payload: input, result, output, event"

	blockInline    = "inline activity, one after another"
	blockRetention = "retention of an instance"
)

// Durations of the timers of blocks, and the times after which the event of a client cancels them.
const (
	oneHop, twoHops = 10 * time.Minute, 30 * time.Minute
	soon, late      = time.Minute, time.Hour
	// long has a fraction of a second. A schedule has whole seconds, so the renewer waits for the remaining time: half
	// a second on average.
	long = 2*time.Hour + 130*time.Millisecond
)

// many is the number of additional blocks in the larger shape, for blocks that take no time.
const many = 10

// staggeredCount is the number of activities of a fan-out that end one after another.
const staggeredCount = 10

// OrderActivities is the number of activities of the order in the example.
const OrderActivities = 4

// Blocks returns the building blocks in the order of docs/operate/cost.md.
func Blocks() []Block {
	return slices.Concat(basicBlocks(), messageBlocks(), timerBlocks(), payloadBlocks(), purgeBlocks())
}

func of(orchestration string, input any) *Shape {
	name := fmt.Sprintf("%s %v", orchestration, input)
	return &Shape{Name: name, Orchestration: orchestration, Input: input, Count: 1}
}

func driven(name, orchestration string, input any, drive driver) *Shape {
	s := of(orchestration, input)
	s.Name, s.Drive = name, drive
	return s
}

func basicBlocks() []Block {
	fan := func(n int, size string) Block {
		name := "activity in a fan-out of " + size
		return Block{Name: name, More: of(fanName, n), Count: n, WithoutOnce: []string{BlockInstance}}
	}
	staggered := of(staggeredName, staggeredCount)
	staggered.Exclude = staggeredCount * apart
	return []Block{
		{Name: BlockInstance, More: of(chainName, 1), Count: 1, Without: []string{BlockActivity}},
		{
			Name: "instance, if all activities are inline", More: of(inlineName, 1), Count: 1,
			Without: []string{blockInline},
		},
		{Name: BlockActivity, More: of(chainName, 1+many), Less: of(chainName, 1), Count: many},
		{Name: blockInline, More: of(inlineName, 1+many), Less: of(inlineName, 1), Count: many},
		fan(10, "10"), fan(100, "100"), fan(1000, "1,000"), //nolint:mnd // sizes
		{
			Name: "activity in a fan-out of 10, of different durations", More: staggered, Count: staggeredCount,
			WithoutOnce: []string{BlockInstance},
		},
		{Name: "retry of an attempt", More: of(flakyName, 1+many), Less: of(flakyName, 1), Count: many, IsTimed: true},
		{
			Name: "sub-orchestration", More: of(parentName, 1+many), Less: of(parentName, 1), Count: many,
			Without: []string{BlockActivity},
		},
	}
}

func messageBlocks() []Block {
	raised := func(n int) *Shape {
		return driven(fmt.Sprintf("%d events", n), eventsName, n, raise(n, time.Second, true))
	}
	sent := func(n int) *Shape { return driven(fmt.Sprintf("%d events sent", n), senderName, n, receive(n)) }
	asked := func(queries, updates int) *Shape {
		return driven(fmt.Sprintf("%d queries, %d updates", queries, updates), eventsName, 1, ask(queries, updates))
	}
	return []Block{
		{Name: BlockEvent, More: raised(1 + many), Less: raised(1), Count: many},
		{Name: "event to another instance", More: sent(1 + many), Less: sent(1), Count: many},
		{Name: "update", More: asked(0, many), Less: asked(0, 0), Count: many},
		{Name: "query, from memory", More: asked(many, 0), Less: asked(0, 0), Count: many},
	}
}

func timerBlocks() []Block {
	fires := func(name string, d time.Duration) Block {
		more, less := of(napsName, nap{1 + many, d}), of(napsName, nap{1, d})
		return Block{Name: name, More: more, Less: less, Count: many, IsTimed: true}
	}
	const more, fewer = 3, 1
	cancelled := func(name string, d, after time.Duration) Block {
		shape := func(n int) *Shape {
			name := fmt.Sprintf("%d timers of %v, cancelled after %v", n, d, after)
			return driven(name, approvalsName, nap{n, d}, raise(n, after, true))
		}
		return Block{
			Name: name, More: shape(more), Less: shape(fewer), Count: more - fewer, Without: []string{BlockEvent},
			IsTimed: true,
		}
	}
	runs := func(name, every string, interval time.Duration) Block {
		shape := func(n int) *Shape {
			name := fmt.Sprintf("%d runs, one in %s", n, every)
			return driven(name, inlineName, 1, repeat(n, every, interval))
		}
		return Block{
			Name: name, More: shape(2 + many), Less: shape(2), Count: many,
			Without: []string{BlockInstance, BlockActivity}, IsTimed: true,
		}
	}
	return []Block{
		fires("timer up to 15 minutes", oneHop),
		fires("timer up to 30 minutes", twoHops),
		fires("timer over 30 minutes", long),
		cancelled("timer up to 15 minutes, cancelled", oneHop, soon),
		cancelled(BlockCancelled, twoHops, soon),
		cancelled("timer over 30 minutes, cancelled", long, late),
		runs("schedule run, up to 15 minutes apart", "10 minutes", oneHop),
		runs("schedule run, further apart", "2 hours", 2*time.Hour),
	}
}

func payloadBlocks() []Block {
	const large, small, kilobytes = 3000, 952, 2 // documents below 4 KB are not compressed
	input := func(n int) *Shape { return of(freightName, load{many, n, 0}) }
	result := func(n int) *Shape { return of(freightName, load{many, 0, n}) }
	started := func(in, out int) *Shape {
		s := of(echoName, parcel{random(in), out})
		s.Name = fmt.Sprintf("echo of %d and %d bytes", in, out)
		return s
	}
	told := func(n int) *Shape {
		return driven(fmt.Sprintf("event of %d bytes", n), eventsName, 1, raise(1, time.Second, random(n)))
	}
	return []Block{
		{Name: "KB of an event", More: told(large), Less: told(small), Count: kilobytes, Step: true},
		{Name: "KB of an input", More: input(large), Less: input(small), Count: kilobytes * many, Step: true},
		{Name: "KB of a result", More: result(large), Less: result(small), Count: kilobytes * many, Step: true},
		{Name: "KB of a start", More: started(large, 0), Less: started(small, 0), Count: kilobytes, Step: true},
		{Name: BlockKilobyte, More: started(0, large), Less: started(0, small), Count: kilobytes},
	}
}

func purgeBlocks() []Block {
	swept := func(sweeps, instances int, orchestration string, n int, drive driver) *Shape {
		name := fmt.Sprintf("%d sweeps, %d instances of %s %d", sweeps, instances, orchestration, n)
		s := driven(name, orchestration, n, drive)
		s.AtOnce, s.Concurrency, s.Afterwards = instances, 1, sweep(sweeps)
		return s
	}
	chains := func(sweeps, instances, n int) *Shape { return swept(sweeps, instances, keptName, n, nil) }
	approve := raise(1, soon, true)
	orders := func(instances int) *Shape { return swept(1, instances, OrderName, OrderActivities, approve) }
	const settled = 5 // sweeps; only the first one purges
	return []Block{
		{Name: blockRetention, More: of(keptName, 1), Less: of(chainName, 1), Count: 1, Step: true},
		{
			Name: BlockPurge, More: chains(1, 1+2*many, 1), Less: chains(1, 1, 1), Count: 2 * many,
			With: []string{blockRetention}, Without: []string{BlockPurgeTurn},
		},
		{Name: BlockPurgeTurn, More: chains(1, 1, 1+many), Less: chains(1, 1, 1), Count: many},
		{Name: BlockSweep, More: chains(settled+many, 1, 1), Less: chains(settled, 1, 1), Count: many, Step: true},
		{Name: BlockOrder, More: driven("an order", OrderName, OrderActivities, approve), Count: 1, Step: true},
		{Name: BlockOrderPurge, More: orders(1 + many), Less: orders(1), Count: many, Step: true},
	}
}

type driver = func(ctx context.Context, c *client.Client, id string) error

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

// billed has a function for each value of a bill, which returns a pointer to the value.
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

// BillBlocks returns the bill of a million of each block. The function measure measures a shape.
func BillBlocks(blocks []Block, l *pricing.List, measure func(s *Shape) (*Measured, error)) ([]Bill, error) {
	p := &priceList{list: l, measure: measure}
	p.shapes, p.blocks, p.by = map[string]*Bill{}, map[string]*Bill{}, map[string]*Block{}
	for i := range blocks {
		p.by[blocks[i].Name] = &blocks[i]
	}
	bills := make([]Bill, len(blocks))
	for i := range blocks {
		b, err := p.block(blocks[i].Name)
		if err != nil {
			return nil, err
		}
		bills[i] = *b
	}
	return bills, nil
}

// priceList measures each shape and calculates each block once.
type priceList struct {
	list           *pricing.List
	measure        func(s *Shape) (*Measured, error)
	shapes, blocks map[string]*Bill
	by             map[string]*Block
}

// shape returns the bill of all instances of a shape.
func (p *priceList) shape(s *Shape) (*Bill, error) {
	if b := p.shapes[s.Name]; b != nil {
		return b, nil
	}
	m, err := p.measure(s)
	if err != nil {
		return nil, err
	}
	m.Instances = 1
	b := m.Bill(p.list)
	p.shapes[s.Name] = &b
	return &b, nil
}

// block returns the bill of a block.
func (p *priceList) block(name string) (*Bill, error) {
	if b := p.blocks[name]; b != nil {
		return b, nil
	}
	k := p.by[name]
	more, err := p.shape(k.More)
	if err != nil {
		return nil, err
	}
	b := *more
	if k.Less != nil {
		less, err := p.shape(k.Less)
		if err != nil {
			return nil, err
		}
		b.minus(less, 1)
	}
	if err := p.without(&b, k.WithoutOnce, 1); err != nil {
		return nil, err
	}
	b.over(k.Count)
	if err := errors.Join(p.without(&b, k.Without, 1), p.without(&b, k.With, -1)); err != nil {
		return nil, err
	}
	b.Name, b.Of, b.Asked = k.Name, "", 0
	p.blocks[name] = &b
	return &b, nil
}

// without subtracts blocks from a bill, multiplied by times.
func (p *priceList) without(b *Bill, names []string, times float64) error {
	for _, name := range names {
		other, err := p.block(name)
		if err != nil {
			return err
		}
		b.minus(other, times)
	}
	return nil
}
