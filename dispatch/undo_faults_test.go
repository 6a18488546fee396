package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// polledActivity is an activity in polling processes with its undo.
type polledActivity struct {
	limit    time.Duration // start-to-close timeout; 0 means none
	retry    bool          // with a retry policy
	crashing int           // number of runs after the first that kill their process

	mu      sync.Mutex
	running map[*crashingProcess]int
	polledResult
}

// polledResult counts the runs and undos, the largest number of concurrent runs, and the runs during the undo. It also
// contains the reported end.
type polledResult struct {
	begun, undone   int
	most, leftAtEnd int
	ended           string
}

func (d *polledActivity) end() polledResult {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.polledResult
}

// count adds n to the runs of a process, and returns the number of runs in live processes.
func (d *polledActivity) count(ctx context.Context, n int) (all int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, _ := ctx.Value(crashingProcessKey{}).(*crashingProcess)
	d.running[m] += n
	for m, k := range d.running {
		if m == nil || !m.dead.Load() {
			all += k
		}
	}
	d.most = max(d.most, all)
	return all
}

// registry returns a registry with the orchestration "saga", which runs the activity until it is cancelled, and then
// undoes it. The first run returns at the duration first after the end of its context, and the other runs return at the
// duration others after it.
func (d *polledActivity) registry(first, others time.Duration) *perdure.Registry {
	d.running = map[*crashingProcess]int{}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "do", func(ctx context.Context, _ int) (string, error) {
		d.count(ctx, 1)
		defer d.count(ctx, -1)
		d.mu.Lock()
		longer := others
		if d.begun++; d.begun == 1 {
			longer = first
		}
		dies := d.begun > 1 && d.begun <= 1+d.crashing
		d.mu.Unlock()
		if dies {
			simhub.Die(ctx)
		}
		<-ctx.Done()
		time.Sleep(longer)
		return "done", nil
	})
	perdure.AddActivity(r, "undo", func(ctx context.Context, how string) (string, error) {
		running := d.count(ctx, 0)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.undone++
		d.leftAtEnd, d.ended = running, how
		return "", nil
	})
	perdure.AddOrchestration(r, "saga", func(ctx *perdure.OrchestrationContext, _ int) (_ string, err error) {
		opts := []perdure.ActivityCallOption{perdure.WaitForCancellation()}
		if d.limit > 0 {
			opts = append(opts, perdure.WithStartToCloseTimeout(d.limit))
		}
		if d.retry {
			opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3}))
		}
		doing := perdure.CallActivityByName[string](ctx, "do", 1, opts...)
		defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
			_, why := doing.Await(ctx)
			_, err := perdure.CallActivityByName[string](ctx, "undo", endOf(why)).Await(ctx)
			return err
		})
		return doing.Await(ctx)
	})
	return r
}

// process polls all queues of the hub, like one process.
func (h *hub) process(ctx context.Context, r *perdure.Registry) (stop func()) {
	o := must(dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{Logger: h.logger()}))
	w := h.activities(r)
	stops := []func() error{
		h.polled(ctx, h.Provider, provider.QueueInbox, o.HandleRecords, dispatch.PollOptions{}),
		h.polled(ctx, h.Provider, "default", w.HandleRecords, dispatch.PollOptions{Renew: w.RenewRecords}),
		h.polled(ctx, h.Provider, provider.QueueTimers, h.Renewer.HandleRecords, dispatch.PollOptions{}),
	}
	return func() {
		for _, s := range stops {
			_ = s()
		}
		o.Close()
	}
}

// A polling process crashes before or after each of its calls. For example, it crashes between the lease and the code,
// between storing and sending the outcome, or between sending and deleting. Another process detects this, and the
// activity is undone after its end.
func TestR23_pollerDies_undoWaitsForTheEnd(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	died := 0
	for _, after := range []bool{false, true} {
		for at, dies := int64(1), true; dies && !t.Failed(); at++ {
			d := &polledActivity{}
			r := d.registry(2*time.Second, 2*time.Second)
			atWork := func(ctx context.Context, c simaws.Call, next func() error) error {
				if m, _ := ctx.Value(crashingProcessKey{}).(*crashingProcess); c.Operation == "ReceiveMessage" &&
					(m == nil || !m.dead.Load()) {
					return next()
				}
				return crashing(ctx, c, next)
			}
			inBubble(t, simhub.Options{
				Registry: r, Intercept: atWork, WorkVisibility: 30 * time.Second, Timers: dynamo.TimersRequeue,
			}, func(ctx context.Context, h *hub) {
				m := &crashingProcess{at: at, after: after}
				first := h.process(context.WithValue(ctx, crashingProcessKey{}, m), r)
				in := h.startAs("a", "saga", 0)
				time.Sleep(5 * time.Second)
				h.send(provider.Message{
					Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
					RequestedBy: history.RequestedByClient,
				})
				time.Sleep(time.Minute)
				dies = m.dead.Load()
				first()
				second := h.process(ctx, r)
				time.Sleep(time.Hour)
				second()
				if e := d.end(); e.undone < 1 || e.undone > 3 || e.undone > 1 && !dies || e.leftAtEnd > 0 ||
					e.most > 1 {
					t.Errorf("call %d, after=%v: got %+v", at, after, e)
				}
				h.wantEmpty()
			})
			if dies {
				died++
			}
		}
	}
	t.Logf("got %d crashes", died)
	if died < 50 {
		t.Errorf("got %d deaths, want at least 50", died)
	}
}

// For minutes, a polling process cannot renew its message leases, with or without its run leases. The activity is
// stopped. If its code ignores the stop, another delivery starts while the first still runs. Then no worker reports
// that the activity has returned.
func TestR23_pollerCannotRenewAndCodeStillRuns_outcomeIsAbandoned(t *testing.T) {
	t.Parallel()
	for _, first := range []time.Duration{time.Second, 9 * time.Second, time.Hour} {
		for _, runs := range []bool{false, true} {
			for _, cancelled := range []time.Duration{
				time.Second, 20 * time.Second, 35 * time.Second, 50 * time.Second,
				4 * time.Minute, 10 * time.Minute,
			} {
				t.Run(fmt.Sprint(first, ", runs=", runs, ", cancelled after ", cancelled), func(t *testing.T) {
					t.Parallel()
					d := &polledActivity{}
					r := d.registry(first, 2*time.Second)
					var throttled atomic.Bool
					intercept := func(_ context.Context, c simaws.Call, next func() error) error {
						if throttled.Load() && (c.Operation == "ChangeMessageVisibilityBatch" ||
							runs && tokenOf(c) != "") {
							return simaws.Throttled()
						}
						return next()
					}
					inBubble(t, simhub.Options{
						Registry: r, Intercept: intercept, WorkVisibility: 30 * time.Second,
						Timers: dynamo.TimersRequeue,
					}, func(ctx context.Context, h *hub) {
						stop := h.process(ctx, r)
						in := h.startAs("a", "saga", 0)
						time.Sleep(time.Minute)
						throttled.Store(true)
						time.AfterFunc(5*time.Minute, func() { throttled.Store(false) })
						time.Sleep(cancelled)
						h.send(provider.Message{
							Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
							RequestedBy: history.RequestedByClient,
						})
						time.Sleep(30 * time.Minute)
						if e := d.end(); e.undone != 1 || e.leftAtEnd > 0 && e.ended != "requested, given_up" {
							t.Errorf("got %+v", e)
						}
						time.Sleep(2 * time.Hour)
						stop()
						h.wantEmpty()
					})
				})
			}
		}
	}
}

// The first delivery ignores the end of its invocation or its timeout, and the outcome cannot be stored. Another
// delivery observes the cancel. The first delivery still runs, so no worker reports that the activity has returned.
func TestR23_firstDeliveryStillRuns_outcomeIsAbandoned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ invocation, limit time.Duration }{
		"end of the invocation": {time.Minute, 0},
		"timeout":               {0, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &polledActivity{limit: c.limit}
			r := d.registry(time.Hour, time.Millisecond)
			keeps := func(_ context.Context, c simaws.Call, next func() error) error {
				in, ok := c.Input.(*dynamodb.UpdateItemInput)
				if ok && d.end().begun < 2 && text(in.ExpressionAttributeValues, ":outcome") != "" {
					return simaws.Throttled()
				}
				return next()
			}
			inBubble(t, simhub.Options{
				Registry: r, Intercept: keeps, InvocationLimit: c.invocation, WorkVisibility: time.Minute,
			}, func(_ context.Context, h *hub) {
				s := &sagas{hub: h}
				in := s.startAs("a", "saga", 0)
				s.meanwhile(30*time.Minute, func() {
					for d.end().begun < 2 {
						time.Sleep(10 * time.Millisecond)
					}
					s.cancelIt(in)
				})
				if e := d.end(); e.undone != 1 || e.leftAtEnd > 0 && e.ended != "requested, given_up" {
					t.Errorf("got %+v", e)
				}
				h.checkIdle()
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// The first delivery ignores the end of its invocation, and its code still runs. Two more deliveries kill their
// processes. The fourth delivery is a suspect, which is admitted again before it runs. The first delivery still counts
// as abandoned.
func TestR23_suspectAfterAbandonedDelivery_reportsAbandoned(t *testing.T) {
	t.Parallel()
	for _, retry := range []bool{false, true} {
		d := &polledActivity{retry: retry, crashing: 2}
		r := d.registry(time.Hour, time.Millisecond)
		none := simhub.Crash(func(simaws.Call) (bool, bool) { return false, false }) // dead processes make no calls
		inBubble(t, simhub.Options{
			Registry: r, Intercept: none, InvocationLimit: time.Minute, WorkVisibility: time.Minute,
		}, func(_ context.Context, h *hub) {
			s := &sagas{hub: h}
			in := s.startAs("a", "saga", 0)
			s.meanwhile(30*time.Minute, func() {
				for d.end().begun < 4 {
					time.Sleep(10 * time.Millisecond)
				}
				s.cancelIt(in)
			})
			if e := d.end(); e.begun != 4 || e.undone != 1 || e.leftAtEnd == 0 || e.ended != "requested, given_up" {
				t.Errorf("retry=%v: got %+v", retry, e)
			}
			h.checkIdle()
			time.Sleep(2 * time.Hour)
		})
	}
}

// family is a parent ("mother") whose child ("kid") runs an activity. Both have an undo.
type family struct {
	*sagas

	orders []string // instances whose undo has started
}

// registry returns a registry with "mother" and "kid". The undo of a "large" kid exceeds any commit. A "strict" kid
// differs from its history, and fails.
func (f *family) registry(way string) *perdure.Registry {
	r := f.sagas.registry()
	perdure.AddActivity(r, "undo-of", func(_ context.Context, id string) (string, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.orders = append(f.orders, id)
		return "", nil
	})
	undo := func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivityByName[string](ctx, "undo-of", ctx.InstanceID()).Await(ctx)
		return err
	}
	perdure.AddOrchestration(r, "mother", func(ctx *perdure.OrchestrationContext, d spec) (_ string, err error) {
		kid := perdure.CallSubOrchestrationByName[string](ctx, "kid", d, perdure.WithInstanceID("kid"),
			perdure.WaitForCancellation())
		defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
			_, why := kid.Await(ctx)
			ctx.SetCustomStatus(endOf(why))
			return undo(ctx)
		})
		return kid.Await(ctx)
	})
	var opts []perdure.OrchestrationOption
	if way == "strict" {
		opts = append(opts, perdure.FailOnNondeterminism())
	}
	perdure.AddOrchestration(r, "kid", func(ctx *perdure.OrchestrationContext, d spec) (_ string, err error) {
		if way == "strict" && ctx.IsReplaying() {
			ctx.SetCustomStatus("no such thing")
		}
		doing := perdure.CallActivityByName[string](ctx, "do", d, perdure.WaitForCancellation())
		defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
			perdure.CallActivityByName[string](ctx, "do", spec{Job: ignoresCancel}, perdure.WaitForCancellation())
			for i := range 40 {
				if way == "large" {
					perdure.CallActivityByName[string](ctx, "missing", randomText(uint64(i), 180<<10))
				}
			}
			return undo(ctx)
		})
		return doing.Await(ctx)
	}, opts...)
	return r
}

// The child's undo exceeds any commit, or the child's code differs from its history. The child fails while it awaits
// the ends of its activities, and its undo does not start. The cancelled parent receives the end of the child, and is
// undone.
func TestR23_childFailsWhileItAwaitsEnds_parentReceivesTheEnd(t *testing.T) {
	t.Parallel()
	for way, want := range map[string]string{
		"large":  history.TypePayloadTooLarge,
		"strict": history.TypeNondeterminism,
	} {
		for _, cold := range []bool{false, true} {
			if way == "strict" && !cold {
				continue
			}
			t.Run(fmt.Sprint(way, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				f := &family{sagas: &sagas{}}
				o := simhub.Options{Registry: f.registry(way)}
				if cold {
					o.CacheBytes = 1
				}
				inBubble(t, o, func(_ context.Context, h *hub) {
					f.hub = h
					in := f.startAs("a", "mother", spec{Job: job{Takes: time.Hour, Longer: 3 * time.Second}})
					f.meanwhile(2*time.Hour, func() { f.cancelAfter(5*time.Second, in) })
					kid, err := h.Provider.ReadInstance(t.Context(), "kid")
					if err != nil {
						t.Fatal(err)
					}
					end, err := h.Provider.ReadTerminalEvent(t.Context(), kid.ExecutionID)
					if err != nil || end.Kind != history.OrchestrationFailed || end.Error.Type != want {
						t.Errorf("child ended with %s, %+v, error %v", end.String(), end.Error, err)
					}
					if fmt.Sprint(f.orders) != "[a]" || string(f.read(in).CustomStatus) != `"requested, over"` {
						t.Errorf("got undos %v, custom status %s", f.orders, f.read(in).CustomStatus)
					}
					f.events(kid)
					f.checkIdle()
					time.Sleep(3 * time.Hour)
				})
			})
		}
	}
}

// An instance is terminated or purged during the grace period that it or its parent waits for. It is not undone, and no
// end is reported for it.
func TestR23_endedDuringGracePeriod_isNotUndone(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"terminate", "purge"} {
		for _, orchestration := range []string{"saga", "mother"} {
			t.Run(fmt.Sprint(way, " ", orchestration), func(t *testing.T) {
				t.Parallel()
				f := &family{sagas: &sagas{}}
				inBubble(t, simhub.Options{Registry: f.registry("")}, func(ctx context.Context, h *hub) {
					f.hub = h
					in := f.startAs("a", orchestration, spec{Job: job{Takes: time.Hour, Longer: 8 * time.Second}})
					f.meanwhile(2*time.Hour, func() {
						f.cancelAfter(5*time.Second, in)
						time.Sleep(4 * time.Second)
						if way == "terminate" {
							f.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
						} else if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil {
							t.Error(err)
						}
					})
					want := "[]"
					if orchestration == "mother" {
						want = "[kid]" // the child was cancelled before, and runs its own undo
					}
					if n := len(f.seen(&f.undone)); n > 0 || fmt.Sprint(f.orders) != want {
						t.Errorf("got %d undos and %v, want %s", n, f.orders, want)
					}
					f.checkIdle()
					time.Sleep(3 * time.Hour)
				})
			})
		}
	}
}

// An orchestration continues as new while its code and a coroutine wait for an end. The waits end, nothing is undone,
// and the next execution does not receive the end.
func TestR23_continueAsNew_endsTheWait(t *testing.T) {
	t.Parallel()
	for _, j := range []job{ignoresCancel, {Takes: time.Hour, Longer: 8 * time.Second}} {
		s := &sagas{}
		r := s.registry()
		perdure.AddOrchestration(r, "goes-on", func(ctx *perdure.OrchestrationContext, d spec) (_ string, err error) {
			defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error {
				s.note(&s.undone)
				return nil
			})
			if d.Fails {
				return "over", perdure.Sleep(ctx, time.Hour)
			}
			f := perdure.CallActivityByName[string](ctx, "do", d, perdure.WaitForCancellation())
			perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) { _, _ = f.Await(ctx) })
			_ = perdure.Sleep(ctx, 5*time.Second)
			f.Cancel("no")
			_ = perdure.Sleep(ctx, 2*time.Second)
			return perdure.ContinueAsNew[string](ctx, spec{Fails: true})
		})
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			s.hub = h
			in := s.startAs("a", "goes-on", spec{Job: j})
			s.serveFor(3 * time.Hour)
			s.wantOutput(s.read(in), `"over"`)
			if n := len(s.seen(&s.undone)); n > 0 {
				t.Errorf("got %d undos, want 0", n)
			}
			for _, e := range s.events(s.read(in)) {
				if e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed {
					t.Errorf("the next execution has %s", e.String())
				}
			}
			s.checkIdle()
			time.Sleep(3 * time.Hour)
		})
	}
}

// A work item of an earlier release lacks the flag for WaitForCancellation. If its code runs and returns, the return is
// still the end. Otherwise, the schedule-to-close timeout limits the wait.
func TestR23_workItemOfEarlierRelease_waitIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job   job
		begun bool
		want  perdure.CancelOutcome
	}{
		"returns":       {job{Takes: time.Hour, Longer: 4 * time.Second}, true, perdure.OutcomeReturned},
		"is abandoned":  {ignoresCancel, true, perdure.OutcomeTimedOut},
		"never started": {ignoresCancel, false, perdure.OutcomeTimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withSagas(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
				in := s.startAs("a", "saga", spec{Job: c.job, Close: 30 * time.Minute})
				s.turn(0)
				items := s.workItems()
				old := items[0].WorkItem
				old.WaitForCancellation, old.PossibleDuplicate = false, true
				if err := s.Provider.PutWorkItems(ctx, old); err != nil {
					t.Fatal(err)
				}
				_ = s.Provider.DeleteRecords(ctx, "default", items[0].Record)
				if !c.begun {
					s.cancelIt(in)
					s.turn(0)
				}
				s.meanwhile(2*time.Hour, func() {
					if c.begun {
						s.cancelAfter(5*time.Second, in)
					}
				})
				now, undone := s.read(in), s.seen(&s.undone)
				if want := `"requested, ` + string(c.want) + `"`; string(now.CustomStatus) != want ||
					len(undone) != 1 || undone[0].Sub(in.CreatedAt) > 31*time.Minute {
					t.Errorf("custom status: got %s, want %s; undone at %v", now.CustomStatus, want, undone)
				}
				s.checkIdle()
			})
		})
	}
}
