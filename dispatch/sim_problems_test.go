package dispatch_test

import (
	"context"
	"encoding/json"
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
	"github.com/perdure/perdure/provider/wire"
)

// problemCase is a temporary failure of the whole hub, unlike the single faults of TestSimulation.
type problemCase struct {
	name          string
	orchestration string
	input         any
	want          string // output
	// hub changes the options and faults of the hub.
	hub func(o *simhub.Options)
	// fault, if set, is called before every call. since is the age of the hub.
	fault func(since time.Duration, c simaws.Call) error
	// duplicate is the probability that a work item is delivered twice.
	duplicate float64
	// act, if set, is run by a client at the same time.
	act func(p *problemHub, ctx context.Context)
	// verify returns errors of this problem, in addition to the common checks.
	verify func(p *problemHub) error
	// within limits the time until the instance has ended; 0 means two days.
	within time.Duration
	// verdicts is the expected number of poison records.
	verdicts int
	// occurred, if set, returns the number of times that the intended situation occurred. It must occur in most seeds.
	occurred func(p *problemHub) int
}

// problemHub is a hub with a problem, and the observations of a run.
type problemHub struct {
	h     *hub
	c     *client.Client
	w     *monitor
	first provider.Instance

	mu sync.Mutex
	// sent and ran count the sent work items and the starts of code, by activity and attempt.
	sent, ran map[[2]int64]int
	timers    map[[2]int64]int // sent to the timers queue, as attempt 0
	back      int              // batches of the inbox that were released
	pickedUp  map[string]int   // recovered dead letters by queue, without wakes
	retired   []*dispatch.Orchestrator
	replays   int // runs of incompatible code
	errs      []error
}

func newProblemHub() *problemHub {
	return &problemHub{
		w: newMonitor(), sent: map[[2]int64]int{}, timers: map[[2]int64]int{}, ran: map[[2]int64]int{},
		pickedUp: map[string]int{},
	}
}

// maxReleases is the number of releases of messages before their instance is blocked, with one more for a frozen
// function.
const maxReleases = 4

// killerCrashes and neighborCrashes limit the runs of a killer and of others in its batch. A killer kills its process
// thirteen times until it is poison, and once or twice more in slow
// processes. It kills the other records of its batch in four deliveries.
const killerCrashes, neighborCrashes = 15, 4

// outage is the duration of a problem.
const outage = time.Hour

func problems() []problemCase {
	return []problemCase{
		{
			name: "every message twice", orchestration: "retried", input: 3, want: "3", duplicate: 0.3,
			verify: func(p *problemHub) error { return p.wantRuns(2 * 3 * succeedsAt) },
		},
		{
			name: "every message twice in bad weather", orchestration: "retried", input: 3, want: "3", duplicate: 0.3,
			hub:    func(o *simhub.Options) { o.Schedule.Fail, o.Schedule.Lose, o.Schedule.Crash = 0.05, 0.05, 0.02 },
			verify: func(p *problemHub) error { return wantNoMoreThan(12, "run", p.ran) },
		},
		{
			name: "an hour in which half of all calls fail", orchestration: "fan", input: 20, want: "210",
			hub: func(o *simhub.Options) { o.Schedule.Fail, o.Schedule.FaultDuration = 0.5, outage },
		},
		{
			name: "an hour in which no status can be written", orchestration: "statuses-of-many", input: 12, want: "78",
			fault: func(since time.Duration, c simaws.Call) error {
				if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && since < outage &&
					strings.HasPrefix(text(in.Key, "pk"), "i#") {
					return simhub.ErrFailed
				}
				return nil
			},
			verify: func(p *problemHub) error {
				return errors.Join(wantNoMoreThan(6, "sent", p.sent), wantNoMoreThan(6, "run", p.ran))
			},
		},
		{
			name: "processes die for five minutes", orchestration: "fan", input: 100, want: "5050",
			hub: func(o *simhub.Options) {
				o.Schedule.Crash, o.Schedule.FaultDuration, o.WorkVisibility = 0.2, 5*time.Minute, 30*time.Second
			},
		},
		{
			name: "processes die, or are frozen, for five minutes", orchestration: "fan", input: 100, want: "5050",
			hub: func(o *simhub.Options) {
				o.Schedule.Crash, o.Schedule.FaultDuration = 0.2, 5*time.Minute
				o.WorkVisibility, o.EndOnRedelivery = 30*time.Second, false
			},
		},
		{
			name: "functions are frozen past their end", orchestration: "retried-fan", input: 20, want: "40",
			hub: func(o *simhub.Options) {
				o.Schedule.Freeze, o.Schedule.FreezeFor, o.Schedule.FaultDuration = 0.02, 4*time.Minute, 30*time.Minute
				o.Schedule.Crash, o.WorkVisibility, o.EndOnRedelivery = 0.01, time.Minute, false
				o.Schedule.Apart = true // the records become suspects one by one, and wait for the same time
			},
			occurred: func(p *problemHub) int { return p.h.Scheduler.Frozen() },
		},
		{
			name: "dead letters are recovered", orchestration: "retried", input: 3, want: "3",
			hub: func(o *simhub.Options) { o.MaxReceiveCount = 3 },
			fault: func(since time.Duration, c simaws.Call) error {
				commits := c.Operation == "PutItem" || c.Operation == "TransactWriteItems"
				if commits && since > 30*time.Second && since < 4*time.Minute ||
					readsCancels(c) && since > 4*time.Minute && since < 20*time.Minute {
					return simhub.ErrFailed
				}
				return nil
			},
			act: func(p *problemHub, ctx context.Context) { p.watch(ctx, 20) },
			occurred: func(p *problemHub) int {
				return min(p.pickedUp["sim://inbox-dead.fifo"], p.pickedUp["sim://default-dead"])
			},
		},
		{
			name: "dead letters of turns that were not sent", orchestration: "paced", input: 12, want: "12",
			hub: func(o *simhub.Options) { o.MaxReceiveCount = 3 },
			fault: func(since time.Duration, c simaws.Call) error {
				in, ok := c.Input.(*sqs.SendMessageBatchInput)
				if ok && *in.QueueUrl == "sim://default" && since > time.Minute && since < 6*time.Minute {
					return simhub.ErrFailed
				}
				return nil
			},
			act:      func(p *problemHub, ctx context.Context) { p.watch(ctx, 20) },
			occurred: func(p *problemHub) int { return p.pickedUp["sim://inbox-dead.fifo"] },
		},
		{
			name: "a turn of many outputs is sent in parts", orchestration: "many-timers", input: 1010, want: "1010",
			fault: func(since time.Duration, c simaws.Call) error {
				if ids := timersSent(c); len(ids) > 0 && ids[0] > 1000 && since < 10*time.Minute {
					return simhub.ErrFailed
				}
				return nil
			},
			verify: func(p *problemHub) error {
				// ignore the timers of failed sends
				maps.DeleteFunc(p.timers, func(of [2]int64, _ int) bool { return of[0] > 600 })
				return wantNoMoreThan(6, "sent", p.timers)
			},
		},
		{
			name: "schedules that cannot be deleted", orchestration: "gives-up", input: 20, want: "20",
			fault: func(_ time.Duration, c simaws.Call) error {
				if c.Operation == "DeleteSchedule" {
					return simhub.ErrFailed
				}
				return nil
			},
			verify: func(p *problemHub) error {
				if p.back > 0 {
					return fmt.Errorf("messages were released %d times", p.back)
				}
				return nil
			},
			occurred: func(p *problemHub) int {
				return strings.Count(strings.Join(p.h.Scheduler.Trace(), "\n"), "DeleteSchedule")
			},
		},
		{
			name: "a killer among other activities", orchestration: "neighbours", input: 12, want: "12", verdicts: 1,
			verify: func(p *problemHub) error {
				killer := [2]int64{3, 1}
				// because each copy of its work item has its own crash markers
				if p.ran[killer] > killerCrashes*p.sent[killer] {
					return fmt.Errorf("the killer ran %d times", p.ran[killer])
				}
				delete(p.ran, killer)
				return wantNoMoreThan(2*neighborCrashes, "run", p.ran)
			},
		},
		{
			name: "an activity of many invocations", orchestration: "marathon", input: 200, want: "200",
			hub: func(o *simhub.Options) { o.InvocationLimit = 40 * time.Second },
		},
		{
			name: "an activity of many invocations that die", orchestration: "marathon", input: 200, want: "200",
			hub: func(o *simhub.Options) {
				// about 200 calls each
				o.InvocationLimit, o.Schedule.Crash, o.Schedule.FaultDuration = 40*time.Second, 0.012, 40*time.Minute
			},
		},
		{
			name: "an activity without progress", orchestration: "stuck", input: 0, want: `"timeout"`,
			within: 20 * time.Minute,
			hub:    func(o *simhub.Options) { o.InvocationLimit = 40 * time.Second },
		},
		{
			name: "a hot instance is blocked", orchestration: "adds", input: 0, want: "61",
			act: (*problemHub).block,
			verify: func(p *problemHub) error {
				// one more run if the first run had an unverified state
				if p.back > maxReleases || p.replays > 2*maxReleases {
					return fmt.Errorf("messages were released %d times, incompatible code ran %d times",
						p.back, p.replays)
				}
				return nil
			},
			occurred: func(p *problemHub) int { return p.replays },
		},
		{
			name: "a hot instance is blocked in bad weather", orchestration: "adds", input: 0, want: "61",
			hub: func(o *simhub.Options) { o.Schedule.Fail, o.Schedule.Lose, o.Schedule.Crash = 0.05, 0.05, 0.02 },
			act: (*problemHub).block,
		},
		{
			name: "a fixed instance has no input", orchestration: "adds", input: 0, want: "1",
			act:      (*problemHub).blockWithNothing,
			occurred: func(p *problemHub) int { return p.replays },
		},
		{
			name: "an old environment in a rollout", orchestration: "strict", input: 6, want: "6",
			act:      (*problemHub).rollout,
			occurred: func(p *problemHub) int { return p.replays },
		},
	}
}

// TestSimulationOfProblems runs several seeds of each problem. No work is lost, duplicated without limit, starved or
// detected as poison. To repeat a seed: go test ./dispatch -run 'TestSimulationOfProblems/<name>' -seed=N.
func TestSimulationOfProblems(t *testing.T) {
	t.Parallel()
	for _, s := range problems() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if *oneSeed >= 0 {
				t.Log("\n" + strings.Join(s.runSeed(t, uint64(*oneSeed)).h.Scheduler.Trace(), "\n"))
				return
			}
			occurred := uint64(0)
			for seed := *firstSeed; seed < *firstSeed+*problemSeeds && !t.Failed(); seed++ {
				p := s.runSeed(t, seed)
				t.Logf("seed %d: at most %d deliveries of a message, dead letters %v, %d frozen, %d replays",
					seed, p.w.deliveries.most, p.pickedUp, p.h.Scheduler.Frozen(), p.replays)
				if s.occurred != nil && s.occurred(p) > 0 {
					occurred++
				}
			}
			if s.occurred != nil && 2*occurred < *problemSeeds && !t.Failed() {
				t.Errorf("the situation occurred in %d of %d seeds, want at least half", occurred, *problemSeeds)
			}
		})
	}
}

// runSeed runs a problem with one seed.
func (s problemCase) runSeed(t *testing.T, seed uint64) (p *problemHub) {
	t.Helper()
	p = newProblemHub()
	o := simhub.Options{
		Registry: p.registry(), Environments: 3, Schedule: &simhub.Schedule{Seed: seed}, EndOnRedelivery: true,
	}
	if s.hub != nil {
		s.hub(&o)
	}
	o.Begins = func(ctx context.Context) {
		if _, died := simhub.Process(ctx); died {
			return // a crashed process is not observed
		}
		p.begins(ctx)
		p.w.deliveries.begins(ctx)
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
	spins := time.AfterFunc(spinLimit, func() { // outside of the bubble, in real time
		panic(fmt.Sprintf("%s, -seed=%d: a goroutine runs without blocking", s.name, seed))
	})
	defer spins.Stop()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		begun = time.Now()
		p.h, p.c = h, client.New(h.Provider)
		p.w.on(h)
		p.first = h.start(s.orchestration, s.input)
		h.Cloud.Table.Lag(3)
		h.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Duplicate: s.duplicate, Reorder: true})
		if s.act != nil {
			h.Scheduler.Go(ctx, "client", func(ctx context.Context) { s.act(p, ctx) })
		}
		err := h.Scheduler.Run(ctx, 48*time.Hour)
		for _, o := range p.retired {
			o.Close()
		}
		if err == nil {
			err = p.ended(ctx, s)
		}
		if err != nil {
			t.Errorf("%s, -seed=%d: %v\n%s", s.name, seed, err, strings.Join(h.Scheduler.Tail(60), "\n"))
		}
	})
	return p
}

// ended checks that the instance has the same end as without the problem, and that nothing became poison.
func (p *problemHub) ended(ctx context.Context, s problemCase) error {
	in, err := p.h.Provider.ReadInstance(ctx, p.first.InstanceID)
	if err != nil {
		return err
	}
	end, err := p.h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	if err != nil {
		return fmt.Errorf("got status %s and no end: %w", in.Status, err)
	}
	var errs []error
	if end.Kind != history.OrchestrationCompleted || string(end.Output) != s.want ||
		in.Status != provider.StatusCompleted {
		errs = append(errs, fmt.Errorf("got status %s, ended with %s, output %s, error %v, want %s",
			in.Status, end.String(), end.Output, end.Error, s.want))
	}
	if took := end.Time.Sub(p.first.CreatedAt); s.within > 0 && took > s.within {
		errs = append(errs, fmt.Errorf("ended after %v, want at most %v", took, s.within))
	}
	if verdicts, wrong := p.w.found(); verdicts != s.verdicts || wrong != nil {
		errs = append(errs, fmt.Errorf("got %d poison records: %w", verdicts, wrong))
	}
	if s.verify != nil {
		errs = append(errs, s.verify(p))
	}
	return errors.Join(append(errs, p.errs...)...)
}

// see counts sent work items, sent timers and released batches.
func (p *problemHub) see(c simaws.Call) {
	if in, ok := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); ok && *in.QueueUrl == "sim://inbox.fifo" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.back++
		return
	}
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range timersSent(c) {
		p.timers[[2]int64{id}]++
	}
	for i := range in.Entries {
		if why, kept := in.Entries[i].MessageAttributes["error"]; kept &&
			strings.HasPrefix(*why.StringValue, "picked up") &&
			!strings.Contains(*in.Entries[i].MessageBody, `"kind":"wake"`) {
			p.pickedUp[*in.QueueUrl]++
		}
		if *in.QueueUrl != "sim://default" {
			continue
		}
		if item, err := wire.DecodeWorkItem(*in.Entries[i].MessageBody); err == nil {
			p.sent[[2]int64{item.ActivityID, int64(item.Attempt)}]++
		}
	}
}

// timersSent returns the IDs of the timers that a call sends to their queue.
func timersSent(c simaws.Call) (ids []int64) {
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	if !ok || *in.QueueUrl != "sim://timers" {
		return nil
	}
	for i := range in.Entries {
		var t provider.Timer
		if err := json.Unmarshal([]byte(*in.Entries[i].MessageBody), &t); err == nil {
			ids = append(ids, t.TimerID)
		}
	}
	return ids
}

// begins counts the start of an activity.
func (p *problemHub) begins(ctx context.Context) {
	a := perdure.ActivityInfoFrom(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran[[2]int64{a.ActivityID, int64(a.Attempt)}]++
}

// wantRuns limits the total number of starts.
func (p *problemHub) wantRuns(most int) error {
	n := 0
	for _, ran := range p.ran {
		n += ran
	}
	if n > most {
		return fmt.Errorf("got %d starts of code, want at most %d", n, most)
	}
	return nil
}

// wantNoMoreThan limits the counts of each attempt, because copies must not multiply.
func wantNoMoreThan(most int, what string, counts map[[2]int64]int) error {
	for _, k := range sortedPairs(counts) {
		if counts[k] > most {
			return fmt.Errorf("attempt %d of activity #%d: %s %d times", k[1], k[0], what, counts[k])
		}
	}
	return nil
}

func sortedPairs(counts map[[2]int64]int) [][2]int64 {
	return slices.SortedFunc(maps.Keys(counts), func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
}

// succeedsAt is the attempt at which the activities of "retried" succeed.
const succeedsAt = 7

func (p *problemHub) registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", func(_ context.Context, n int) (int, error) {
		return n + 1, nil
	})
	perdure.AddActivity(r, "retried", func(ctx context.Context, n int) (int, error) {
		if a := perdure.ActivityInfoFrom(ctx).Attempt; a < succeedsAt {
			return 0, fmt.Errorf("attempt %d", a)
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "retried", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		policy := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: 20 * time.Second, BackoffCoefficient: 1})
		fs := make([]*perdure.Future[int], n)
		for i := range fs {
			fs[i] = perdure.CallActivityByName[int](ctx, "retried", 1, policy)
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
	perdure.AddActivity(r, "stuck", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	perdure.AddOrchestration(r, "stuck", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "stuck", n).Await(ctx)
		if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
			return failed.Type, nil
		}
		return "", err
	})
	// paced waits before each of its activities
	perdure.AddOrchestration(r, "paced", func(ctx *perdure.OrchestrationContext, n int) (sum int, err error) {
		for range n {
			if _, err = perdure.CreateTimer(ctx, 20*time.Second).Await(ctx); err != nil {
				return sum, err
			}
			if sum, err = perdure.CallActivityByName[int](ctx, "inc", sum).Await(ctx); err != nil {
				return sum, err
			}
		}
		return sum, nil
	})
	// many-timers creates more timers in a turn than are sent at once
	perdure.AddOrchestration(r, "many-timers", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		fs := make([]perdure.Awaitable, n)
		for i := range fs {
			fs[i] = perdure.CreateTimer(ctx, 12*time.Minute)
		}
		return n, perdure.WhenAll(ctx, fs...)
	})
	// gives-up ends while long timers have schedules
	perdure.AddOrchestration(r, "gives-up", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for range n {
			perdure.CreateTimer(ctx, 2*time.Hour)
		}
		_, err := perdure.CreateTimer(ctx, 30*time.Minute).Await(ctx)
		return n, err
	})
	perdure.AddActivity(r, "kills", func(ctx context.Context, _ int) (int, error) {
		simhub.Die(ctx)
		return 0, nil
	})
	perdure.AddOrchestration(r, "neighbours", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		killer := perdure.CallActivityByName[int](ctx, "kills", 0)
		var fs []*perdure.Future[int]
		for range n {
			fs = append(fs, perdure.CallActivityByName[int](ctx, "inc", 0))
		}
		if _, err := killer.Await(ctx); err == nil {
			return 0, errors.New("the killer has not failed")
		}
		return sumOf(ctx, fs)
	})
	// strict awaits timers in sequence, and fails on nondeterminism
	perdure.AddOrchestration(r, "strict", func(ctx *perdure.OrchestrationContext, n int) (sum int, err error) {
		for range n {
			if _, err = perdure.CreateTimer(ctx, 5*time.Second).Await(ctx); err != nil {
				return sum, err
			}
			sum++
		}
		return sum, nil
	}, perdure.FailOnNondeterminism())
	// retried-fan calls activities that fail once, and others that do not
	perdure.AddActivity(r, "second", func(ctx context.Context, n int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
			return 0, errors.New("at first")
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "retried-fan", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		policy := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: 20 * time.Second, BackoffCoefficient: 1})
		var fs []*perdure.Future[int]
		for range n {
			fs = append(fs, perdure.CallActivityByName[int](ctx, "second", 1, policy),
				perdure.CallActivityByName[int](ctx, "inc", 0))
		}
		return sumOf(ctx, fs)
	})
	return r
}

// fanByName is fan with the counted activity "inc".
func fanByName(ctx *perdure.OrchestrationContext, n int) (int, error) {
	fs := make([]*perdure.Future[int], n)
	for i := range fs {
		fs[i] = perdure.CallActivityByName[int](ctx, "inc", i)
	}
	return sumOf(ctx, fs)
}

// marathon takes many invocations, each of which continues from the last heartbeat.
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

// adds returns the sum of events until an event is zero.
func adds(ctx *perdure.OrchestrationContext, sum int) (int, error) {
	for {
		n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil || n == 0 {
			return sum, err
		}
		sum += n
	}
}

// watch runs n sweeps at the interval of the renewer's rule.
func (p *problemHub) watch(ctx context.Context, n int) {
	for range n {
		time.Sleep(2 * time.Minute)
		_, _ = p.h.Renewer.Sweep(ctx) // a failure shows in the final checks
	}
}

// incompatible returns a build that differs from history, because it calls an activity instead of waiting for an event.
func (p *problemHub) incompatible(name string, opts ...perdure.OrchestrationOption) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, name, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		p.mu.Lock()
		p.replays++
		p.mu.Unlock()
		return perdure.CallActivityByName[int](ctx, "missing", 1).Await(ctx)
	}, opts...)
	return r
}

// deploy replaces the orchestrators, and returns the previous ones.
func (p *problemHub) deploy(ctx context.Context, these ...*dispatch.Orchestrator) (before []*dispatch.Orchestrator) {
	before = p.h.Replace(these...)
	p.repeatCall(ctx, "announce", p.h.Environment(0).ReportBuild)
	return before
}

// broken returns n orchestrators of a build.
func (p *problemHub) broken(r *perdure.Registry, n int) (all []*dispatch.Orchestrator) {
	for range n {
		all = append(all, must(dispatch.NewOrchestrator(r, p.h.Provider, &dispatch.OrchestratorOptions{
			BuildID: "broken", Logger: slog.New(slog.DiscardHandler),
		})))
	}
	return all
}

// until waits for up to an hour for a condition.
func (p *problemHub) until(ctx context.Context, what string, done func(ctx context.Context) bool) {
	for waited := time.Duration(0); !done(ctx); waited += time.Second {
		if waited > time.Hour {
			p.errs = append(p.errs, fmt.Errorf("an hour later: %s", what))
			return
		}
		time.Sleep(time.Second)
	}
}

// has waits until history has n events of a kind.
func (p *problemHub) has(ctx context.Context, kind history.Kind, n int) {
	p.until(ctx, fmt.Sprintf("there are no %d events %s", n, kind), func(ctx context.Context) bool {
		got := 0
		for e, err := range p.c.History(ctx, p.first.InstanceID) {
			if err == nil && e.Kind == kind {
				got++
			}
		}
		return got >= n
	})
}

// block lets a build whose code differs from history block the instance, raises events, and then deploys the original
// build again.
func (p *problemHub) block(ctx context.Context) {
	p.raise(ctx, "first", 1)
	p.has(ctx, history.ExternalEventRaised, 1)
	running := p.deploy(ctx, p.broken(p.incompatible("adds"), len(p.h.Orchestrators))...)
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
			p.errs = append(p.errs, fmt.Errorf("an hour after the last of %d events, %d are in history",
				events, p.parked(ctx)))
			break
		}
		time.Sleep(time.Minute)
	}
	p.rollBack(ctx, running)
	p.raise(ctx, "end", 0)
}

// rollBack deploys the previous build, and runs sweeps until the instance is not blocked.
func (p *problemHub) rollBack(ctx context.Context, running []*dispatch.Orchestrator) {
	p.retired = p.deploy(ctx, running...)
	for range 15 {
		p.watch(ctx, 1)
		if in, err := p.h.Provider.ReadInstance(ctx, p.first.InstanceID); err == nil &&
			in.Status != provider.StatusBlocked {
			return
		}
	}
	p.errs = append(p.errs, errors.New("the instance is Blocked after the fix and 15 sweeps"))
}

// blockWithNothing blocks the instance by a wake, so that the fixed build has no input to process. The instance still
// becomes Running again.
func (p *problemHub) blockWithNothing(ctx context.Context) {
	p.raise(ctx, "first", 1)
	p.has(ctx, history.ExternalEventRaised, 1)
	running := p.deploy(ctx, p.broken(p.incompatible("adds"), len(p.h.Orchestrators))...)
	p.repeatCall(ctx, "wake", func(ctx context.Context) error {
		return p.h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageWake, InstanceID: p.first.InstanceID,
		})
	})
	p.is(ctx, provider.StatusBlocked)
	p.rollBack(ctx, running)
	p.raise(ctx, "end", 0)
}

// is waits until the instance has a status.
func (p *problemHub) is(ctx context.Context, want provider.RuntimeStatus) {
	p.until(ctx, fmt.Sprintf("the instance is not %s", want), func(ctx context.Context) bool {
		in, err := p.h.Provider.ReadInstance(ctx, p.first.InstanceID)
		return err == nil && in.Status == want
	})
}

// rollout keeps one of three environments on an old build that differs from history. The old build must leave the
// instance to the new build, which has reported later. An hour later, sweeps wake the instance if the old build has
// blocked it.
func (p *problemHub) rollout(ctx context.Context) {
	old := p.broken(p.incompatible("strict", perdure.FailOnNondeterminism()), 1)
	p.repeatCall(p.h.t.Context(), "announce", old[0].ReportBuild) // before the problem starts
	before := time.Now()
	p.has(ctx, history.TimerCreated, 1)
	p.retired = p.h.Replace(old[0])[:1]
	time.Sleep(time.Until(before.Add(provider.BuildReportInterval))) // two builds do not report at the same time
	p.repeatCall(ctx, "announce", p.retired[0].ReportBuild)
	time.Sleep(outage)
	for sweeps := 0; sweeps < 30*24 && !p.hasEnded(ctx); sweeps++ {
		p.watch(ctx, 1)
	}
}

// hasEnded reports whether the instance has ended.
func (p *problemHub) hasEnded(ctx context.Context) bool {
	in, err := p.h.Provider.ReadInstance(ctx, p.first.InstanceID)
	return err == nil && in.Status.Terminal()
}

func (p *problemHub) raise(ctx context.Context, id string, n int) {
	p.repeatCall(ctx, "raise", func(ctx context.Context) error {
		return p.c.RaiseEvent(ctx, p.first.InstanceID, "add", n, client.WithEventID(id))
	})
}

func (p *problemHub) repeatCall(ctx context.Context, what string, f func(ctx context.Context) error) {
	if err := f(ctx); err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %w", what, err))
	}
}

// parked counts the parked inputs in history.
func (p *problemHub) parked(ctx context.Context) (n int) {
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
