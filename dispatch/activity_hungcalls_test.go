package dispatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// hung intercepts one call, which hangs until moment after the end of its context.
type hung struct {
	operation   string        // an UpdateItem must be of an activity record
	after       time.Duration // since the start of the test
	begun, over atomic.Bool
}

// moment is the time that a call takes after its context has ended.
const moment = 100 * time.Millisecond

// intercept returns an interceptor that makes the call hang.
func (h *hung) intercept(since time.Time) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if readsCancels(c) {
			time.Sleep(moment) // another call of the batch is in progress
		}
		update, ok := c.Input.(*dynamodb.UpdateItemInput)
		if ok && !strings.HasPrefix(text(update.Key, "sk"), "a#") || c.Operation != h.operation ||
			time.Since(since) < h.after || !h.begun.CompareAndSwap(false, true) {
			return next()
		}
		<-ctx.Done()
		time.Sleep(moment)
		h.over.Store(true)
		return ctx.Err()
	}
}

// besides returns the orchestrations "plain", "waited" and "beating". Each of them calls an activity.
func besides(takes time.Duration) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "plain", func(ctx context.Context, _ int) (int, error) {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			time.Sleep(moment)
		}
		return 1, nil
	})
	perdure.AddActivity(r, "beating", func(ctx context.Context, _ int) (int, error) {
		perdure.Heartbeat(ctx, "half")
		time.Sleep(takes)
		return 1, nil
	})
	for name, opts := range map[string][]perdure.ActivityCallOption{
		"plain": nil, "beating": nil, "waited": {perdure.WaitForCancellation()},
	} {
		activity := strings.Replace(name, "waited", "plain", 1)
		perdure.AddOrchestration(r, name, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallActivityByName[int](ctx, activity, 1, opts...).Await(ctx)
		})
	}
	return r
}

// If a batch ended during one of its calls, the function could be frozen, and would complete the call when it is
// thawed. The call could then lease a record that another worker has, or write the record of an activity that has
// ended. The batch therefore cancels the call and waits for its return.
func TestBatch_endsWhileACallHangs_waitsForTheCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*struct {
		orchestration string
		takes         time.Duration
		hung          hung
		deliveries    int
		cancelled     bool // before the activity starts
	}{
		"first lease": {
			orchestration: "plain", takes: 3500 * time.Millisecond,
			hung: hung{operation: "ChangeMessageVisibilityBatch"},
		},
		"renewed lease": {
			orchestration: "plain", takes: 29 * time.Second,
			hung: hung{operation: "ChangeMessageVisibilityBatch", after: 10 * time.Second},
		},
		"lease before the start": {
			orchestration: "plain", hung: hung{operation: "ChangeMessageVisibilityBatch"}, deliveries: 3,
			cancelled: true,
		},
		"renewed run lease": {
			orchestration: "waited", takes: 16 * time.Second, hung: hung{
				operation: "UpdateItem", after: 10 * time.Second,
			},
		},
		"heartbeat details": {
			orchestration: "beating", takes: 1100 * time.Millisecond, hung: hung{operation: "UpdateItem"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := besides(c.takes)
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				f := &jobHub{hub: h}
				in := f.startAs("a", c.orchestration, 0)
				w := f.workerOf(r, nil)
				f.turn(0)
				records := f.receive("sim://default")
				if len(records) != 1 {
					t.Fatalf("got %d records, want 1", len(records))
				}
				if records[0].ReceiveCount = max(1, c.deliveries); c.cancelled {
					f.cancelIt(in)
				}
				began := time.Now()
				f.interfere(c.hung.intercept(began))
				w.HandleRecords(ctx, records)
				took, ended := time.Since(began)-c.takes, c.hung.over.Load()
				if !c.hung.begun.Load() || !ended || took > 6*moment {
					t.Errorf("call started: %v, returned: %v, %v after the activity", c.hung.begun.Load(), ended, took)
				}
				synctest.Wait()
				if text := f.log.String(); strings.Contains(text, "WARN") || strings.Contains(text, "ERROR") {
					t.Errorf("got warnings about abandoned calls: %s", text)
				}
			})
		})
	}
}

// When a process stops or an invocation ends, activities end within the grace period. The worker renews their leases
// until then.
func TestLease_gracePeriod_isRenewed(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: time.Hour, Longer: 50 * time.Second})
		w := f.worker(func(o *dispatch.WorkerOptions) { o.CancellationGracePeriod = time.Minute })
		ctx, end := context.WithCancel(ctx)
		defer end()
		records := f.receive("sim://default")
		over := make(chan []string, 1)
		go func() { over <- w.HandleRecords(ctx, records) }()
		time.Sleep(10 * time.Second)
		end()
		time.Sleep(49 * time.Second)
		if again := f.receive("sim://default"); len(again) > 0 {
			t.Error("the record was redelivered in the grace period")
		}
		<-over
		// The worker takes the lease at 3 s, and renews it at 28 and 53 s.
		if got, want := strings.Join(f.leases(), ", "),
			"1 for 30s, 1 for 30s, 1 for 30s"; !strings.HasPrefix(got, want) {
			t.Errorf("got leases %s, want %s", got, want)
		}
	})
}

// cancelIt cancels an instance like a client.
func (f *jobHub) cancelIt(in provider.Instance) {
	f.t.Helper()
	f.send(provider.Message{
		Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
		RequestedBy: history.RequestedByClient,
	})
	f.turn(0)
}
