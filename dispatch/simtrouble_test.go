package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// trouble is what a hub goes through as a whole: not a fault here and there, as in TestSimulation, but an hour of it.
type trouble struct {
	name          string
	orchestration string
	input         any
	want          string // its output
	// hub changes what the hub is made of, and its weather.
	hub func(o *simhub.Options)
	// fault, if set, stands before every call, beside the weather; since is how long the hub has been there.
	fault func(since time.Duration, c simaws.Call) error
	// duplicate is the probability that a work item comes twice.
	duplicate float64
	// act, if set, is what a client does meanwhile.
	act func(p *patient, ctx context.Context)
	// judge says what is wrong in the end, beside what always is.
	judge func(p *patient) error
}

// patient is a hub in trouble, and what was seen of it.
type patient struct {
	h     *hub
	c     *client.Client
	w     *witness
	first provider.Instance

	mu sync.Mutex
	// sent and ran count the work items that were sent, and the times that code began, by activity and attempt.
	sent, ran map[[2]int64]int
	back      int // batches of the inbox that were given back
	errs      []error
}

// triesOfABuild is how often an instance's messages are given back before it is blocked, and what a frozen function makes of that.
const triesOfABuild = 4

// outage is how long trouble lasts.
const outage = time.Hour

func troubles() []trouble {
	return []trouble{
		{
			name: "every message twice", orchestration: "stubborn", input: 3, want: "3", duplicate: 0.3,
			judge: func(p *patient) error { return p.wantRuns(2 * 3 * succeedsAt) },
		},
		{
			name: "every message twice in bad weather", orchestration: "stubborn", input: 3, want: "3", duplicate: 0.3,
			hub:   func(o *simhub.Options) { o.Schedule.Fail, o.Schedule.Lose, o.Schedule.Crash = 0.05, 0.05, 0.02 },
			judge: func(p *patient) error { return wantNoMoreThan(12, "run", p.ran) },
		},
		{
			name: "an hour in which half of all calls fail", orchestration: "fan", input: 20, want: "210",
			hub: func(o *simhub.Options) { o.Schedule.Fail, o.Schedule.StormFor = 0.5, outage },
		},
		{
			name: "an hour in which no status can be written", orchestration: "statuses-of-many", input: 12, want: "78",
			fault: func(since time.Duration, c simaws.Call) error {
				if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && since < outage && strings.HasPrefix(text(in.Key, "pk"), "i#") {
					return simhub.ErrFailed
				}
				return nil
			},
			judge: func(p *patient) error {
				return errors.Join(wantNoMoreThan(3, "sent", p.sent), wantNoMoreThan(3, "ran", p.ran))
			},
		},
		{
			name: "processes die for five minutes", orchestration: "fan", input: 100, want: "5050",
			hub: func(o *simhub.Options) {
				o.Schedule.Crash, o.Schedule.StormFor, o.WorkVisibility = 0.2, 5*time.Minute, 30*time.Second
			},
		},
		{
			name: "processes die, or are frozen, for five minutes", orchestration: "fan", input: 100, want: "5050",
			hub: func(o *simhub.Options) {
				o.Schedule.Crash, o.Schedule.StormFor, o.WorkVisibility, o.Mortal = 0.2, 5*time.Minute, 30*time.Second, false
			},
		},
		{
			name: "queues give up after three deliveries", orchestration: "stubborn", input: 3, want: "3",
			hub: func(o *simhub.Options) {
				o.Schedule.Fail, o.Schedule.StormFor, o.MaxReceiveCount = 0.3, 10*time.Minute, 3
			},
			act: func(p *patient, ctx context.Context) { p.watch(ctx, 12) },
		},
		{
			name: "an activity of many invocations", orchestration: "marathon", input: 200, want: "200",
			hub: func(o *simhub.Options) { o.InvocationLimit = 40 * time.Second },
		},
		{
			name: "a hot instance is blocked", orchestration: "adds", input: 0, want: "60",
			act: (*patient).block,
			judge: func(p *patient) error {
				if p.back > triesOfABuild {
					return fmt.Errorf("its messages were given back %d times", p.back)
				}
				return nil
			},
		},
		{
			name: "a hot instance is blocked in bad weather", orchestration: "adds", input: 0, want: "60",
			hub: func(o *simhub.Options) { o.Schedule.Fail, o.Schedule.Lose, o.Schedule.Crash = 0.05, 0.05, 0.02 },
			act: (*patient).block,
		},
	}
}

// Each trouble with several seeds: nothing is lost, multiplies, starves or is found to be poison. A seed that fails does so again:
// go test ./dispatch -run 'TestSimulationInTrouble/<name>' -seed=N.
func TestSimulationInTrouble(t *testing.T) {
	t.Parallel()
	for _, s := range troubles() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if *oneSeed >= 0 {
				s.endure(t, uint64(*oneSeed), true)
				return
			}
			for seed := uint64(0); seed < *schedules/600 && !t.Failed(); seed++ {
				s.endure(t, seed, false)
			}
		})
	}
}

// endure runs a trouble with one seed.
func (s trouble) endure(t *testing.T, seed uint64, trace bool) {
	t.Helper()
	p := &patient{w: newWitness(), sent: map[[2]int64]int{}, ran: map[[2]int64]int{}}
	o := simhub.Options{Registry: p.registry(), Environments: 3, Schedule: &simhub.Schedule{Seed: seed}, Mortal: true}
	if s.hub != nil {
		s.hub(&o)
	}
	var begun time.Time
	o.Intercept = func(ctx context.Context, c simaws.Call, next func() error) error {
		if s.fault != nil {
			if err := s.fault(time.Since(begun), c); err != nil {
				return err
			}
		}
		err := p.w.interceptPoison(ctx, c, next)
		if err == nil {
			p.see(c)
		}
		return err
	}
	spins := time.AfterFunc(time.Minute, func() { // outside of the bubble: in real time
		panic(fmt.Sprintf("%s, -seed=%d: a goroutine neither blocks nor ends", s.name, seed))
	})
	defer spins.Stop()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		begun = time.Now()
		p.h, p.w.h, p.c = h, h, client.New(h.Provider)
		p.first = h.start(s.orchestration, s.input)
		h.Cloud.Table.Lag(3)
		h.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Duplicate: s.duplicate, Reorder: true})
		if s.act != nil {
			h.Scheduler.Go(ctx, "client", func(ctx context.Context) { s.act(p, ctx) })
		}
		err := h.Scheduler.Run(ctx, 48*time.Hour)
		if err == nil {
			err = p.ended(ctx, s)
		}
		if err != nil {
			t.Errorf("%s, -seed=%d: %v\n%s", s.name, seed, err, strings.Join(h.Scheduler.Tail(60), "\n"))
		}
		if trace {
			t.Log("\n" + strings.Join(h.Scheduler.Trace(), "\n"))
		}
	})
}

// ended wants the instance to have ended as without any trouble, and nothing to have been found poison.
func (p *patient) ended(ctx context.Context, s trouble) error {
	in, err := p.h.Provider.ReadInstance(ctx, p.first.InstanceID)
	if err != nil {
		return err
	}
	end, err := p.h.Provider.ReadEnd(ctx, in.ExecutionID)
	if err != nil {
		return fmt.Errorf("it is %s, and has not ended: %w", in.Status, err)
	}
	var errs []error
	if end.Kind != history.OrchestrationCompleted || string(end.Output) != s.want || in.Status != provider.StatusCompleted {
		errs = append(errs, fmt.Errorf("it is %s, and ended with %s %s %v, want %s", in.Status, end.String(), end.Output, end.Error, s.want))
	}
	if verdicts, wrong := p.w.found(); verdicts > 0 || wrong != nil {
		errs = append(errs, fmt.Errorf("%d records were found to be poison: %w", verdicts, wrong))
	}
	if s.judge != nil {
		errs = append(errs, s.judge(p))
	}
	return errors.Join(append(errs, p.errs...)...)
}

// see counts the work items that are sent.
func (p *patient) see(c simaws.Call) {
	if in, ok := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); ok && *in.QueueUrl == "sim://inbox.fifo" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.back++
		return
	}
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	if !ok || *in.QueueUrl != "sim://default" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range in.Entries {
		if item, err := provider.DecodeWorkItem(*in.Entries[i].MessageBody); err == nil {
			p.sent[[2]int64{item.ActivityID, int64(item.Attempt)}]++
		}
	}
}

// begins counts an activity that begins.
func (p *patient) begins(ctx context.Context) {
	a := perdure.ActivityInfoFrom(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran[[2]int64{a.ActivityID, int64(a.Attempt)}]++
}

// wantRuns bounds how often code began, altogether.
func (p *patient) wantRuns(most int) error {
	n := 0
	for _, ran := range p.ran {
		n += ran
	}
	if n > most {
		return fmt.Errorf("code began %d times, want %d at the most", n, most)
	}
	return nil
}

// wantNoMoreThan bounds how often anything happened to one attempt: what a copy leads to must lead to no more copies.
func wantNoMoreThan(most int, what string, counts map[[2]int64]int) error {
	for _, k := range sortedPairs(counts) {
		if counts[k] > most {
			return fmt.Errorf("attempt %d of activity #%d was %s %d times", k[1], k[0], what, counts[k])
		}
	}
	return nil
}

func sortedPairs(counts map[[2]int64]int) [][2]int64 {
	return slices.SortedFunc(maps.Keys(counts), func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
}

// succeedsAt is the attempt at which the activities of "stubborn" succeed.
const succeedsAt = 7

func (p *patient) registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", func(ctx context.Context, n int) (int, error) {
		p.begins(ctx)
		return n + 1, nil
	})
	perdure.AddActivity(r, "stubborn", func(ctx context.Context, n int) (int, error) {
		p.begins(ctx)
		if a := perdure.ActivityInfoFrom(ctx).Attempt; a < succeedsAt {
			return 0, fmt.Errorf("attempt %d", a)
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "stubborn", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		policy := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: 20 * time.Second, BackoffCoefficient: 1})
		fs := make([]*perdure.Future[int], n)
		for i := range fs {
			fs[i] = perdure.CallActivityByName[int](ctx, "stubborn", 1, policy)
		}
		return sumOf(ctx, fs)
	})
	perdure.AddOrchestration(r, "fan", fanByName)
	perdure.AddOrchestration(r, "statuses-of-many", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		ctx.SetCustomStatus(n)
		return fanByName(ctx, n)
	})
	perdure.AddActivity(r, "marathon", marathon)
	perdure.AddOrchestration(r, "marathon", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "marathon", n).Await(ctx)
	})
	perdure.AddOrchestration(r, "adds", adds)
	return r
}

// fanByName is fan with the activity of the registry that counts.
func fanByName(ctx *perdure.OrchestrationContext, n int) (int, error) {
	fs := make([]*perdure.Future[int], n)
	for i := range fs {
		fs[i] = perdure.CallActivityByName[int](ctx, "inc", i)
	}
	return sumOf(ctx, fs)
}

// marathon takes many invocations: each goes on from the heartbeat of the one before.
func marathon(ctx context.Context, n int) (int, error) {
	done, _ := perdure.HeartbeatDetails[int](ctx)
	for done < n {
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		done++
		perdure.Heartbeat(ctx, done)
	}
	return done, nil
}

// adds sums up events until one is zero.
func adds(ctx *perdure.OrchestrationContext, sum int) (int, error) {
	for {
		n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil || n == 0 {
			return sum, err
		}
		sum += n
	}
}

// watch calls the watch n times, as its rule does.
func (p *patient) watch(ctx context.Context, n int) {
	for range n {
		time.Sleep(2 * time.Minute)
		_, _ = p.h.Timekeeper.Watch(ctx) // what fails is seen in the end
	}
}

// block has the instance blocked in a build that does not know its code, raises events all the while, and then deploys the build that
// does.
func (p *patient) block(ctx context.Context) {
	broken := perdure.NewRegistry()
	perdure.AddOrchestration(broken, "another", fan)
	running := slices.Clone(p.h.Orchestrators)
	for i := range p.h.Orchestrators {
		p.h.Orchestrators[i] = dispatch.NewOrchestrator(dispatch.Options{Registry: broken, Provider: p.h.Provider, BuildID: "broken", Logger: slog.New(slog.DiscardHandler)})
	}
	p.insist(ctx, "announce", p.h.Orchestrators[0].Announce)
	rng := rand.New(rand.NewPCG(uint64(len(p.first.InstanceID)), 1))
	const events = 60
	for i := range events {
		p.raise(ctx, fmt.Sprintf("e-%d", i), 1)
		if rng.IntN(4) == 0 {
			simhub.Idle(ctx, rng.IntN(10))
		}
	}
	for waited := time.Duration(0); p.parked(ctx) != events; waited += time.Minute {
		if waited == time.Hour {
			p.errs = append(p.errs, fmt.Errorf("an hour after the last of %d events %d are in history", events, p.parked(ctx)))
			break
		}
		time.Sleep(time.Minute)
	}
	for i := range p.h.Orchestrators {
		p.h.Orchestrators[i].Close()
		p.h.Orchestrators[i] = running[i]
	}
	p.insist(ctx, "announce", p.h.Orchestrators[0].Announce)
	p.watch(ctx, 2)
	p.raise(ctx, "end", 0)
}

func (p *patient) raise(ctx context.Context, id string, n int) {
	p.insist(ctx, "raise", func(ctx context.Context) error {
		return p.c.Raise(ctx, p.first.InstanceID, "add", n, client.WithEventID(id))
	})
}

func (p *patient) insist(ctx context.Context, what string, f func(ctx context.Context) error) {
	if err := f(ctx); err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %w", what, err))
	}
}

// parked counts the events of the outside that are in history.
func (p *patient) parked(ctx context.Context) (n int) {
	for e, err := range p.c.History(ctx, p.first.InstanceID) {
		if err != nil {
			p.errs = append(p.errs, err)
			break
		}
		if e.Kind == history.InputsParked {
			n += len(e.Inputs)
		}
	}
	return n
}
