package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// invocationTime is the timeout of the orchestrator function (R19).
const invocationTime = 30 * time.Second

// process is the process of an invocation. A crashed process cannot call AWS.
type process struct{ dead atomic.Bool }

type processKey struct{}

// busy is an interceptor for a loaded cloud: calls have latency, a tenth of the sends are throttled, and some responses
// are lost. It counts the times that SQS accepts each output.
type busy struct {
	mu  sync.Mutex
	rng *rand.Rand
	of  map[string]int // by queue and event
	// sends with a lost response, which the sender may repeat
	lost map[string]int
	all  int
	// throttle is the share of throttled sends.
	throttle float64
	crashes  []int // the numbers of the sends at which the process crashes
	sent     int
}

func newBusy(seed uint64, crashes ...int) *busy {
	return &busy{
		rng: rand.New(rand.NewPCG(seed, 1)), of: map[string]int{}, lost: map[string]int{}, throttle: 0.1,
		crashes: crashes,
	}
}

var errThrottled = &smithy.GenericAPIError{Code: "RequestThrottled", Message: "slow down", Fault: smithy.FaultServer}

func (b *busy) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	b.mu.Lock()
	latency, luck := 20*time.Millisecond+time.Duration(b.rng.ExpFloat64()*float64(60*time.Millisecond)), b.rng.Float64()
	b.mu.Unlock()
	if !pause(ctx, latency) {
		return context.Cause(ctx)
	}
	p, _ := ctx.Value(processKey{}).(*process)
	in, send := c.Input.(*sqs.SendMessageBatchInput)
	switch {
	case p != nil && p.dead.Load():
		return simhub.ErrCrashed
	case !send:
		return next()
	case luck < b.throttle:
		return errThrottled
	case p != nil && b.ends():
		p.dead.Store(true)
		return simhub.ErrCrashed
	}
	err := next()
	lost := err == nil && luck > 0.998
	b.count(in, lost)
	if lost {
		err = errThrottled
	}
	return err
}

func (b *busy) ends() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent++
	return slices.Contains(b.crashes, b.sent)
}

func (b *busy) count(in *sqs.SendMessageBatchInput, lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range in.Entries {
		var m struct {
			ActivityID int64 `json:"activityId"`
			TimerID    int64 `json:"timerId"`
		}
		if json.Unmarshal([]byte(*e.MessageBody), &m) == nil && m.ActivityID+m.TimerID > 0 {
			output := fmt.Sprint(*in.QueueUrl, m.ActivityID, m.TimerID)
			b.of[output]++
			b.all++
			if lost {
				b.lost[output]++
			}
		}
	}
}

// repeats returns the number of outputs that were repeated without a lost response, and the largest number of such
// repeats for one output.
func (b *busy) repeats() (outputs, most int) {
	for output, n := range b.of {
		if again := n - 1 - b.lost[output]; again > 0 {
			outputs, most = outputs+1, max(most, again)
		}
	}
	return outputs, most
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// invoke passes messages of the inbox to the orchestrator alone, in invocations like those of the function. It returns
// when no message has arrived for an hour.
func (h *hub) invoke() (invocations int) {
	h.t.Helper()
	inbox := h.Provider.Config().InboxURL
	for last := time.Now(); time.Since(last) < time.Hour; time.Sleep(time.Second) {
		out, err := h.Cloud.Queues.ReceiveMessage(h.t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &inbox, MaxNumberOfMessages: 10,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			continue
		}
		records := simhub.Records(out.Messages)
		p := &process{}
		ctx, stop := context.WithTimeout(context.WithValue(h.t.Context(), processKey{}, p), invocationTime)
		failed := h.Orchestrators[0].HandleRecords(ctx, records)
		killed := p.dead.Load() || ctx.Err() != nil
		stop()
		for _, r := range records {
			if !killed && !slices.Contains(failed, r.ID) {
				_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, r)
			}
		}
		invocations, last = invocations+1, time.Now()
	}
	return invocations
}

// A turn schedules 100,000 activities, which several invocations send. Each invocation continues where the previous one
// stopped, was throttled or crashed. An activity is repeated only if its response was lost, or if the process crashed
// before it stored the progress. The number of repeats is at most the number of sends between two writes of the cursor.
func TestLargeTurn_invocationsCrashOrAreThrottled_sendsEachActivityOnce(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	// invocations; an inbox message is a dead letter after 100 deliveries
	most := map[string]int{"without keys": 6, "with one key": 60, "a key each": 6}
	for name, opts := range map[string]func(n int) []perdure.ActivityCallOption{
		"without keys": func(int) []perdure.ActivityCallOption { return nil },
		"with one key": func(int) []perdure.ActivityCallOption {
			return []perdure.ActivityCallOption{perdure.Exclusive("a")}
		},
		"a key each": func(n int) []perdure.ActivityCallOption {
			return []perdure.ActivityCallOption{perdure.Exclusive(strconv.Itoa(n))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aHundredThousandAreSentOnce(t, opts, most[name])
		})
	}
}

func aHundredThousandAreSentOnce(t *testing.T, opts func(n int) []perdure.ActivityCallOption, mostInvocations int) {
	t.Helper()
	const n = 100_000
	r := build(func(r *perdure.Registry) {
		perdure.AddActivity(r, "small", func(context.Context, int) (int, error) { return 0, nil })
		perdure.AddOrchestration(r, "wide", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			fs := make([]perdure.Awaitable, n)
			for i := range fs {
				fs[i] = perdure.CallActivityByName[int](ctx, "small", i, opts(i)...)
			}
			return n, perdure.WhenAll(ctx, fs...)
		})
	})
	const betweenCursors = 4 * 640 // three windows of sends and the current one
	b := newBusy(1, 1500, 4321)
	withFault(t, r, b.intercept, func(_ context.Context, h *hub) {
		h.start("wide", "wide", n)
		began := time.Now()
		invocations := h.invoke()
		took := (time.Since(began) - time.Hour).Round(time.Second)
		again, most := b.repeats()
		t.Logf("%d activities: sent %.4f times each, by %d invocations in %v; sent again after a lost response: "+
			"%d, after a crash: %d, none of them more than %d time",
			n, float64(b.all)/n, invocations, took, len(b.lost), again, most)
		if len(b.of) != n || float64(b.all) > 1.05*n || most > 1 || again > len(b.crashes)*betweenCursors {
			t.Errorf("got %d of %d sent, each %.3f times, %d of them unnecessarily, one %d times", len(b.of), n,
				float64(b.all)/n, again, most)
		}
		if invocations > mostInvocations {
			t.Errorf("got %d invocations, want at most %d", invocations, mostInvocations)
		}
		if s := h.status("wide"); s.Status != client.StatusRunning {
			t.Errorf("got status %s", s.Status)
		}
	})
}

// Without a crash, only sends with a lost response are repeated, even under throttling.
func TestLargeTurn_withoutCrash_repeatsOnlyLostResponses(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const n = 10_000
	r := build(func(r *perdure.Registry) {
		perdure.AddActivity(r, "small", func(context.Context, int) (int, error) { return 0, nil })
		perdure.AddOrchestration(r, "wide", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			for i := range n {
				perdure.CallActivityByName[int](ctx, "small", i, perdure.WithScheduleToCloseTimeout(time.Hour*24))
			}
			return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
		})
	})
	b := newBusy(2)
	withFault(t, r, b.intercept, func(_ context.Context, h *hub) {
		h.start("wide", "wide", n)
		b.throttle = 0.5
		invocations := h.invoke()
		again, _ := b.repeats()
		t.Logf("%d activities and as many time limits, half of the sends throttled: sent %.4f times each, by %d "+
			"invocations; %d whose response was lost, %d others again",
			n, float64(b.all)/(2*n), invocations, len(b.lost), again)
		if len(b.of) != 2*n || again > 0 || invocations < 2 {
			t.Errorf("got %d of %d sent, %d of them unnecessarily", len(b.of), 2*n, again)
		}
	})
}

// A turn cancels 10,000 long timers, each with a schedule, within one invocation. The remaining schedules fire without
// effect.
func TestTimers_tenThousandCancelledAtOnce_needOneInvocation(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const n = 10_000
	r := build(func(r *perdure.Registry) {
		perdure.AddOrchestration(r, "patient", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			timers := make([]*perdure.Future[time.Time], n)
			for i := range timers {
				timers[i] = perdure.CreateTimer(ctx, 6*time.Hour)
			}
			if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
				return 0, err
			}
			for _, timer := range timers {
				timer.Cancel("not needed")
			}
			return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
		})
	})
	latency := func(ctx context.Context, c simaws.Call, next func() error) error {
		if c.Operation == "DeleteSchedule" && !pause(ctx, 30*time.Millisecond) {
			return context.Cause(ctx)
		}
		return next()
	}
	withFault(t, r, latency, func(ctx context.Context, h *hub) {
		h.start("patient", "patient", n)
		h.ServeFor(ctx, time.Hour)
		if held := h.Cloud.Schedules.Count(); held != n {
			t.Fatalf("got %d schedules", held)
		}
		h.raiseGo("patient", 1)
		began := time.Now()
		invocations := h.invoke()
		left := h.Cloud.Schedules.Count()
		t.Logf("%d timers were cancelled by %d invocation in %v: %d schedules are deleted, %d remain", n, invocations,
			(time.Since(began) - time.Hour).Round(time.Millisecond), n-left, left)
		if invocations != 1 || left == n || time.Since(began)-time.Hour > 5*time.Second {
			t.Errorf("got %d invocations, %d remaining schedules", invocations, left)
		}
	})
}
