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

// Traders and clients call operations of accounts and ledgers, while faults affect all processes. Messages are
// repeated, instances are paused, cancelled, terminated and purged, and several builds run concurrently. At the end, an
// auditor checks every history.

const (
	safeKey  = "a"    // the account that never ends
	burstKey = "rush" // the account with very many operations
	// chosenID is the prefix of update IDs that their senders have chosen.
	chosenID = "id-"
)

// callSimulation is a simulated hub with traders.
type callSimulation struct {
	*problemHub

	seed          uint64
	rng           *rand.Rand // decides which messages are repeated
	audit         *auditor
	traders       []string
	clientActions []clientAction
	copyRate      float64 // probability that a message between instances is repeated
	copies        []delayedCopy
	clients       int // clients that are still active
	withKiller    bool
	withMarathon  bool
	// sweepEvery is the number of three-minute intervals between two sweeps, each of which takes a thousand scheduler
	// decisions.
	sweepEvery int
	// finalSweeps is the minimum number of sweeps after all traders have ended. Dead letters remain until these sweeps.
	finalSweeps int
}

// callLabel returns the label of a call.
func callLabel(who string, n int) string { return fmt.Sprintf("%s/%d", who, n) }

// newCall returns a random call.
func (x *callSimulation) newCall(rng *rand.Rand, label string) call {
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
		c.Op = opDamage
	case n < 5 && c.Account:
		c.Op = opClose
	}
	if rng.IntN(5) == 0 {
		c.Op, c.ID = opSlow, fmt.Sprint(chosenID, rng.IntN(2))
	}
	return c
}

// newTraderInput returns the random input of a trader.
func (x *callSimulation) newTraderInput(rng *rand.Rand, id string) (t traderInput) {
	pauses := []time.Duration{0, 0, 0, 0, 0, time.Second, 25 * time.Second, 7 * time.Minute}
	for n := range 3 + rng.IntN(4) {
		c := x.newCall(rng, callLabel(id, n))
		c.Pause, c.Later = pauses[rng.IntN(len(pauses))], rng.IntN(5) < 2
		if rng.IntN(8) == 0 {
			c.CancelsAfter = []time.Duration{-1, time.Second, 10 * time.Second}[rng.IntN(3)]
		}
		t.Calls = append(t.Calls, c)
	}
	if rng.IntN(3) == 0 {
		t.Continues = 1 + rng.IntN(len(t.Calls)-1)
	}
	return t
}

// plan chooses the traders and client actions of a seed.
func (x *callSimulation) plan() (all []traderInput) {
	rng := rand.New(rand.NewPCG(x.seed, 20))
	for n := range 2 + rng.IntN(3) {
		id := fmt.Sprint("trader-", n)
		t := x.newTraderInput(rng, id)
		if n == 0 && x.withKiller {
			t.Calls = append(t.Calls, call{
				Key: safeKey, Account: true, Op: opSlow, posting: posting{Label: "doomed", N: 1, Activity: "kills"},
			})
		}
		if n == 0 && x.withMarathon {
			t.Calls = append(t.Calls, call{
				Key: safeKey, Account: true, Op: opSlow, posting: posting{Label: "long", N: 1, Activity: "marathon"},
			})
		}
		all = append(all, t)
		x.traders = append(x.traders, id)
	}
	for range rng.IntN(4) {
		d := clientActions()[rng.IntN(len(clientActions()))]
		x.clientActions = append(x.clientActions, d)
		if d.ends {
			x.audit.mayEnd[d.to] = true
		}
	}
	x.copyRate = []float64{0, 0.1, 0.4}[rng.IntN(3)]
	return all
}

// simulateCalls runs a seed with random faults, or with a problem.
func simulateCalls(t *testing.T, seed uint64, s *problemCase) (x *callSimulation) {
	t.Helper()
	x = &callSimulation{problemHub: newProblemHub(), seed: seed, rng: rand.New(rand.NewPCG(seed, 24))}
	x.audit = newAuditor(x.w)
	o := simhub.Options{Registry: tradingRegistry(), Environments: 3, EndOnRedelivery: true, MaxAttempts: noCrashLimit}
	if turn := seed * uint64(len(simulated())); s == nil {
		o.Schedule = faultSchedule(turn)
		o.Schedule.FaultSteps = 2000
		o.EndOnRedelivery = seed/faultSchedules%2 == 0
		o.Rollup = int64(seed / faultSchedules / 2 % 2)
	} else {
		o.Schedule, o.MaxAttempts = &simhub.Schedule{Seed: seed}, 0
		x.withKiller, x.withMarathon = s.verdicts > 0, s.orchestration == "marathon"
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
			x.recordMessage(c)
		}
		return err
	}
	name := "weather"
	if s != nil {
		name = s.name
	}
	spins := time.AfterFunc(spinLimit, func() { // outside of the bubble, in real time
		panic(fmt.Sprintf("%s, -seed=%d: a goroutine runs without blocking", name, seed))
	})
	defer spins.Stop()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		begun = time.Now()
		x.h, x.c = h, client.New(h.Provider)
		x.w.on(h)
		x.first = h.startAs("nothing", "trader", traderInput{})
		for n, plan := range x.plan() {
			h.startAs(x.traders[n], "trader", plan)
		}
		if seed%burstEvery == burstEvery-1 && s == nil {
			h.startAs("rusher", "rusher", burstOperations)
			x.traders = append(x.traders, "rusher")
		}
		h.Cloud.Table.Lag(3)
		disorder := simaws.Disorder{Seed: seed, Reorder: true}
		if s != nil {
			disorder.Duplicate = s.duplicate
		}
		h.Cloud.Queues.Disorder("sim://default", disorder)
		x.clients, x.sweepEvery = 2, 1000
		if s != nil && s.act != nil {
			x.sweepEvery, x.finalSweeps = 5, 8
		}
		olderBuilds := x.olderBuilds(s)
		if olderBuilds != nil {
			x.clients, x.sweepEvery = x.clients+1, 5
		}
		h.Scheduler.Go(ctx, "asker", x.callAccounts) // goroutines share x after this call
		h.Scheduler.Go(ctx, "meddler", x.runActions)
		if olderBuilds != nil {
			h.Scheduler.Go(ctx, "builder", olderBuilds)
		}
		h.Scheduler.Go(ctx, "closer", x.endAll)
		err := h.Scheduler.Run(ctx, 72*time.Hour)
		for _, o := range x.retired {
			o.Close()
		}
		if err == nil {
			err = x.verify(ctx, s)
		}
		if err != nil {
			t.Errorf("%s, -seed=%d: %v\n%s", name, seed, err, strings.Join(h.Scheduler.Tail(40), "\n"))
		}
	})
	return x
}

// burstOperations is the number of operations of the account with very many operations, in one of burstEvery seeds. An
// execution processes fewer operations.
const burstOperations, burstEvery = 1100, 32

// olderBuilds returns a function that deploys older builds during a seed, or nil.
func (x *callSimulation) olderBuilds(s *problemCase) func(ctx context.Context) {
	rng := rand.New(rand.NewPCG(x.seed, 25))
	switch {
	case s == nil && rng.IntN(4) > 0:
		return nil
	case s == nil, strings.Contains(s.name, "rollout"):
		return func(ctx context.Context) { x.deployOlderBuild(ctx, rng, 1) }
	case strings.Contains(s.name, "blocked"), strings.Contains(s.name, "fixed"):
		return func(ctx context.Context) { x.deployOlderBuild(ctx, rng, len(x.h.Orchestrators)) }
	}
	return nil
}

// deployOlderBuild runs an older build in n environments for a while.
func (x *callSimulation) deployOlderBuild(ctx context.Context, rng *rand.Rand, n int) {
	m := x.newSimClient("builder", 26)
	defer x.leaves(m)
	m.moment(ctx)
	running := x.deploy(ctx, x.broken(olderRegistry(), n)...)
	time.Sleep(time.Duration(1+rng.IntN(90)) * time.Minute)
	x.retired = x.deploy(ctx, running...)[:n]
}

// verify returns all errors after the end of a seed.
func (x *callSimulation) verify(ctx context.Context, s *problemCase) error {
	verdicts, wrong := x.w.found()
	if wrong == nil {
		wrong = x.w.check(ctx)
	}
	rest := x.h.CheckIdle(ctx)
	if s != nil && s.verdicts > 0 && verdicts == s.verdicts {
		verdicts, rest = 0, nil
	}
	if verdicts > 0 {
		wrong = errors.Join(wrong, fmt.Errorf("got %d poison records, want 0", verdicts))
	}
	errs := append([]error{wrong, rest, x.audit.check(ctx)}, x.errs...)
	for _, key := range accountKeys {
		errs = append(errs, x.audit.checkBook(ctx, key))
	}
	return errors.Join(errs...)
}

// TestSimulationOfCalls runs each seed in one order with random faults. To repeat a seed: go test ./dispatch -run
// TestSimulationOfCalls$ -seed=N.
func TestSimulationOfCalls(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		t.Log("\n" + strings.Join(simulateCalls(t, uint64(*oneSeed), nil).h.Scheduler.Trace(), "\n"))
		return
	}
	for seed := *firstSeed; seed < *firstSeed+*callSeeds && !t.Failed(); seed++ {
		simulateCalls(t, seed, nil)
	}
}

// TestSimulationOfCallsWithProblems runs the simulation with all problems.
func TestSimulationOfCallsWithProblems(t *testing.T) {
	t.Parallel()
	for _, s := range problems() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if *oneSeed >= 0 {
				t.Log("\n" + strings.Join(simulateCalls(t, uint64(*oneSeed), &s).h.Scheduler.Trace(), "\n"))
				return
			}
			for seed := *firstSeed; seed < *firstSeed+*problemSeeds && !t.Failed(); seed++ {
				simulateCalls(t, seed, &s)
			}
		})
	}
}
