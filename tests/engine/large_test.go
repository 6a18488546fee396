package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// invocationTime is what the orchestrator function has (R19).
const invocationTime = 30 * time.Second

// process is what an invocation runs in; a dead one reaches AWS no more.
type process struct{ dead atomic.Bool }

type processKey struct{}

// busy is a cloud in a busy hour: calls take their time, a tenth of the sends are throttled, and some lose their responses. It counts
// how often SQS has taken each output.
type busy struct {
	mu   sync.Mutex
	rng  *rand.Rand
	of   map[string]int // by queue and event
	all  int
	dies []int // after so many sends the process dies
	sent int
}

func newBusy(seed uint64, dies ...int) *busy {
	return &busy{rng: rand.New(rand.NewPCG(seed, 1)), of: map[string]int{}, dies: dies}
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
	case luck < 0.1:
		return errThrottled
	case p != nil && b.ends():
		p.dead.Store(true)
		return simhub.ErrCrashed
	}
	err := next()
	b.count(in)
	if err == nil && luck > 0.998 {
		err = errThrottled
	}
	return err
}

func (b *busy) ends() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent++
	return slices.Contains(b.dies, b.sent)
}

func (b *busy) count(in *sqs.SendMessageBatchInput) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range in.Entries {
		var m struct {
			ActivityID int64 `json:"activityId"`
			TimerID    int64 `json:"timerId"`
		}
		if json.Unmarshal([]byte(*e.MessageBody), &m) == nil && m.ActivityID+m.TimerID > 0 {
			b.of[fmt.Sprint(*in.QueueUrl, m.ActivityID, m.TimerID)]++
			b.all++
		}
	}
}

// most is how often the output was sent that was sent most often.
func (b *busy) most() (most int) {
	for _, n := range b.of {
		most = max(most, n)
	}
	return most
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

// invoke gives what is in the inbox to the orchestrator alone, in invocations as the function's are, until nothing has come for an hour.
func (h *hub) invoke() (invocations int) {
	h.t.Helper()
	inbox := h.Provider.Hub().InboxURL
	for last := time.Now(); time.Since(last) < time.Hour; time.Sleep(time.Second) {
		out, err := h.Cloud.Queues.ReceiveMessage(h.t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &inbox, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
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

// A turn that schedules 100,000 activities is sent by as many invocations as it takes, each of which goes on where the one before has
// stopped, was throttled or died.
func TestAHundredThousandActivitiesOfOneTurnAreSentOnce(t *testing.T) {
	t.Parallel()
	const n = 100_000
	r := build(func(r *perdure.Registry) {
		perdure.AddActivity(r, "small", func(context.Context, int) (int, error) { return 0, nil })
		perdure.AddOrchestration(r, "wide", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			fs := make([]perdure.Awaitable, n)
			for i := range fs {
				fs[i] = perdure.CallActivityByName[int](ctx, "small", i)
			}
			return n, perdure.WhenAll(ctx, fs...)
		})
	})
	b := newBusy(1, 1500, 4321)
	withFault(t, r, b.intercept, func(_ context.Context, h *hub) {
		h.start("wide", "wide", n)
		began := time.Now()
		invocations := h.invoke()
		took := (time.Since(began) - time.Hour).Round(time.Second)
		t.Logf("%d activities: sent %.4f times each, one of them %d times, by %d invocations in %v", n, float64(b.all)/n, b.most(), invocations, took)
		if len(b.of) != n || float64(b.all) > 1.05*n {
			t.Errorf("%d of %d were sent, each %.3f times", len(b.of), n, float64(b.all)/n)
		}
		if s := h.status("wide"); s.Status != client.StatusRunning {
			t.Errorf("the instance is %s", s.Status)
		}
	})
}

// A turn that cancels 10,000 long timers, of which each has a schedule, is done within one invocation; the schedules that it has no time
// to delete fire for nothing.
func TestTenThousandLongTimersAreCancelledInOneInvocation(t *testing.T) {
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
			t.Fatalf("%d schedules", held)
		}
		h.tell("patient", 1)
		began := time.Now()
		invocations := h.invoke()
		left := h.Cloud.Schedules.Count()
		t.Logf("%d timers were cancelled by %d invocation in %v: %d schedules are deleted, %d are left", n, invocations, (time.Since(began) - time.Hour).Round(time.Millisecond), n-left, left)
		if invocations != 1 || left == n || time.Since(began)-time.Hour > 5*time.Second {
			t.Errorf("%d invocations, %d schedules are left", invocations, left)
		}
	})
}
