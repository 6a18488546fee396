package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// Traders call operations of accounts and ledgers, and clients beside them, while the weather harms everybody, messages come again, instances are paused,
// cancelled, terminated and purged, and builds stand beside each other. When all is over an auditor goes through every history.

const (
	safeKey = "a"    // of the account that nobody ends
	rushKey = "rush" // of the account that has very many operations
	// chosenID begins the ids of updates that their senders have chosen.
	chosenID = "id-"
)

// exchange is a hub with traders.
type exchange struct {
	*patient

	seed      uint64
	rng       *rand.Rand // of what comes again
	audit     *auditor
	traders   []string
	meddlings []meddling
	echoes    float64 // how likely a message between instances comes again
	heard     []echo
	clients   int // that have not left
	doomed    bool
	marathons bool
	// watchEvery is how many times three minutes lie between two looks of the watch, each of which is a thousand decisions.
	watchEvery int
	// looksBehind is how often the watch looks at least when all are over: what a queue has moved to its dead letters is there until then.
	looksBehind int
}

// labelOf is that of a call.
func labelOf(who string, n int) string { return fmt.Sprintf("%s/%d", who, n) }

// newCall is one that chance makes.
func (x *exchange) newCall(rng *rand.Rand, label string) call {
	c := call{Op: opPost, posting: posting{Label: label, N: 1 + rng.IntN(9), Activity: "dwell"}}
	switch n := rng.IntN(20); {
	case n < 8:
		c.Key, c.Account = safeKey, true
	case n < 12:
		c.Key, c.Account = "b", true
	case n < 16:
		c.Key = "ledger-t"
		if rng.IntN(3) > 0 {
			c.Starts = 3
		}
	case n < 19:
		c.Key, c.Starts = "ledger-u", 2
	default:
		c.Key = "nobody"
	}
	switch n := rng.IntN(10); {
	case n < 3:
		c.Op = opSlow
	case n < 4:
		c.Op = opSpoil
	case n < 5 && c.Account:
		c.Op = opClose
	}
	if rng.IntN(5) == 0 {
		c.Op, c.ID = opSlow, fmt.Sprint(chosenID, rng.IntN(2))
	}
	return c
}

// newTrading is what a trader does.
func (x *exchange) newTrading(rng *rand.Rand, id string) (t trading) {
	pauses := []time.Duration{0, 0, 0, 0, 0, time.Second, 25 * time.Second, 7 * time.Minute}
	for n := range 3 + rng.IntN(4) {
		c := x.newCall(rng, labelOf(id, n))
		c.Pause, c.Later = pauses[rng.IntN(len(pauses))], rng.IntN(5) < 2
		if rng.IntN(8) == 0 {
			c.GivesUp = []time.Duration{-1, time.Second, 10 * time.Second}[rng.IntN(3)]
		}
		t.Calls = append(t.Calls, c)
	}
	if rng.IntN(3) == 0 {
		t.Anew = 1 + rng.IntN(len(t.Calls)-1)
	}
	return t
}

// plan decides on what is done in a seed.
func (x *exchange) plan() (all []trading) {
	rng := rand.New(rand.NewPCG(x.seed, 20))
	for n := range 2 + rng.IntN(3) {
		id := fmt.Sprint("trader-", n)
		t := x.newTrading(rng, id)
		if n == 0 && x.doomed {
			t.Calls = append(t.Calls, call{Key: safeKey, Account: true, Op: opSlow, posting: posting{Label: "doomed", N: 1, Activity: "kills"}})
		}
		if n == 0 && x.marathons {
			t.Calls = append(t.Calls, call{Key: safeKey, Account: true, Op: opSlow, posting: posting{Label: "long", N: 1, Activity: "marathon"}})
		}
		all = append(all, t)
		x.traders = append(x.traders, id)
	}
	for range rng.IntN(4) {
		d := meddlings()[rng.IntN(len(meddlings()))]
		x.meddlings = append(x.meddlings, d)
		if d.ends {
			x.audit.mortal[d.to] = true
		}
	}
	x.echoes = []float64{0, 0.1, 0.4}[rng.IntN(3)]
	return all
}

// trade runs a seed: in a weather, or in a trouble.
func trade(t *testing.T, seed uint64, s *trouble) (x *exchange) {
	t.Helper()
	x = &exchange{patient: newPatient(), seed: seed, rng: rand.New(rand.NewPCG(seed, 24))}
	x.audit = newAuditor(x.w)
	o := simhub.Options{Registry: tradingRegistry(), Environments: 3, Mortal: true, MaxAttempts: unwatched}
	if turn := seed * uint64(len(simulated())); s == nil {
		o.Schedule = weather(turn)
		o.Schedule.Storm = 2000
		o.Mortal = seed/weathers%2 == 0
		o.Rollup = int64(seed / weathers / 2 % 2)
	} else {
		o.Schedule, o.MaxAttempts = &simhub.Schedule{Seed: seed}, 0
		x.doomed, x.marathons = s.verdicts > 0, s.orchestration == "marathon"
		if s.hub != nil {
			s.hub(&o)
		}
	}
	x.w.limited(o.MaxAttempts)
	o.Begins = func(ctx context.Context) {
		x.w.begins(ctx)
		x.w.deliveries.begins(ctx)
	}
	var begun time.Time
	o.Intercept = func(ctx context.Context, c simaws.Call, next func() error) error {
		if s != nil && s.fault != nil {
			if err := s.fault(time.Since(begun), c); err != nil {
				return err
			}
		}
		err := x.w.interceptOrder(ctx, c, next)
		if err == nil {
			x.audit.intercept(c)
			x.hears(c)
		}
		return err
	}
	name := "weather"
	if s != nil {
		name = s.name
	}
	spins := time.AfterFunc(spinLimit, func() { // outside of the bubble: in real time
		panic(fmt.Sprintf("%s, -seed=%d: a goroutine neither blocks nor ends", name, seed))
	})
	defer spins.Stop()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		begun = time.Now()
		x.h, x.c = h, client.New(h.Provider)
		x.w.on(h)
		x.first = h.startAs("nothing", "trader", trading{})
		for n, plan := range x.plan() {
			h.startAs(x.traders[n], "trader", plan)
		}
		if seed%rushIn == rushIn-1 && s == nil {
			h.startAs("rusher", "rusher", rushOf)
			x.traders = append(x.traders, "rusher")
		}
		h.Cloud.Table.Lag(3)
		disorder := simaws.Disorder{Seed: seed, Reorder: true}
		if s != nil {
			disorder.Duplicate = s.duplicate
		}
		h.Cloud.Queues.Disorder("sim://default", disorder)
		x.clients, x.watchEvery = 2, 1000
		if s != nil && s.act != nil {
			x.watchEvery, x.looksBehind = 5, 8
		}
		beside := x.beside(s)
		if beside != nil {
			x.clients, x.watchEvery = x.clients+1, 5
		}
		h.Scheduler.Go(ctx, "asker", x.asks) // from here on what is in x is everybody's
		h.Scheduler.Go(ctx, "meddler", x.meddles)
		if beside != nil {
			h.Scheduler.Go(ctx, "builder", beside)
		}
		h.Scheduler.Go(ctx, "closer", x.closesAll)
		err := h.Scheduler.Run(ctx, 72*time.Hour)
		for _, o := range x.retired {
			o.Close()
		}
		if err == nil {
			err = x.judge(ctx, s)
		}
		if err != nil {
			t.Errorf("%s, -seed=%d: %v\n%s", name, seed, err, strings.Join(h.Scheduler.Tail(40), "\n"))
		}
	})
	return x
}

// rushOf is how many operations there are of the account that has very many, in one of rushIn seeds: more than one execution takes.
const rushOf, rushIn = 1100, 32

// beside is what is done with the builds of a hub meanwhile.
func (x *exchange) beside(s *trouble) func(ctx context.Context) {
	rng := rand.New(rand.NewPCG(x.seed, 25))
	switch {
	case s == nil && rng.IntN(4) > 0:
		return nil
	case s == nil, strings.Contains(s.name, "rollout"):
		return func(ctx context.Context) { x.staysBehind(ctx, rng, 1) }
	case strings.Contains(s.name, "blocked"), strings.Contains(s.name, "mended"):
		return func(ctx context.Context) { x.staysBehind(ctx, rng, len(x.h.Orchestrators)) }
	}
	return nil
}

// staysBehind has environments run a build that is older, for a while.
func (x *exchange) staysBehind(ctx context.Context, rng *rand.Rand, n int) {
	m := x.clientOf("builder", 26)
	defer x.leaves(m)
	m.moment(ctx)
	running := x.deploy(ctx, x.broken(olderRegistry(), n)...)
	time.Sleep(time.Duration(1+rng.IntN(90)) * time.Minute)
	x.retired = x.deploy(ctx, running...)[:n]
}

// judge says what is wrong when all is over.
func (x *exchange) judge(ctx context.Context, s *trouble) error {
	verdicts, wrong := x.w.found()
	if wrong == nil {
		wrong = x.w.check(ctx)
	}
	rest := x.h.CheckRest(ctx)
	if s != nil && s.verdicts > 0 && verdicts == s.verdicts {
		verdicts, rest = 0, nil
	}
	if verdicts > 0 {
		wrong = errors.Join(wrong, fmt.Errorf("%d records were found to be poison", verdicts))
	}
	errs := append([]error{wrong, rest, x.audit.check(ctx)}, x.errs...)
	for _, key := range accountKeys {
		errs = append(errs, x.audit.wantBook(ctx, key))
	}
	return errors.Join(errs...)
}

// Each seed is one order, in a weather: go test ./dispatch -run TestSimulationOfCalls$ -seed=N.
func TestSimulationOfCalls(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		t.Log("\n" + strings.Join(trade(t, uint64(*oneSeed), nil).h.Scheduler.Trace(), "\n"))
		return
	}
	for seed := *firstSeed; seed < *firstSeed+*traded && !t.Failed(); seed++ {
		trade(t, seed, nil)
	}
}

// The same in all troubles.
func TestSimulationOfCallsInTrouble(t *testing.T) {
	t.Parallel()
	for _, s := range troubles() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if *oneSeed >= 0 {
				t.Log("\n" + strings.Join(trade(t, uint64(*oneSeed), &s).h.Scheduler.Trace(), "\n"))
				return
			}
			for seed := *firstSeed; seed < *firstSeed+*troubled && !t.Failed(); seed++ {
				trade(t, seed, &s)
			}
		})
	}
}
