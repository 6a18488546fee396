package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// hold is an activity that has a key for itself.
type hold struct {
	Key, Name string
	For       time.Duration
	// FailsTo is the attempt that succeeds. Kills: its process dies, so many times. Pending: it is not over when its code is. Stubborn: it ignores
	// the end of its context. Short is its schedule-to-close time. Unknown: no worker knows it.
	FailsTo, Kills    int
	Pending, Stubborn bool
	Short             time.Duration
	Unknown           bool
}

// holders have keys for themselves: a witness that each has one holder at a time, but for those whose process has died.
type holders struct {
	mu    sync.Mutex
	now   map[string]map[string]func() (died bool)
	most  int // keys that were held at once
	began []string
	ends  []string
	kills map[string]int
	wrong []string
}

func newHolders() *holders {
	return &holders{now: map[string]map[string]func() bool{}, kills: map[string]int{}}
}

// take has a key held until it is released.
func (h *holders) take(ctx context.Context, key, name string) (release func(how string)) {
	name += " of " + perdure.ActivityInfoFrom(ctx).InstanceID
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began = append(h.began, name)
	for other, died := range h.now[key] {
		if !died() {
			h.wrong = append(h.wrong, fmt.Sprintf("%s begins, and %s has the key %q", name, other, key))
		}
	}
	if h.now[key] == nil {
		h.now[key] = map[string]func() bool{}
	}
	h.now[key][name] = func() bool { _, died := simhub.Process(ctx); return died }
	held := 0
	for _, by := range h.now {
		held += min(len(by), 1)
	}
	h.most = max(h.most, held)
	return func(how string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.now[key], name)
		h.ends = append(h.ends, name+" "+how)
	}
}

func (h *holders) run(ctx context.Context, x hold) (string, error) {
	release := h.take(ctx, x.Key, x.Name)
	h.mu.Lock()
	h.kills[x.Name]++
	dies := h.kills[x.Name] <= x.Kills
	h.mu.Unlock()
	if dies {
		simhub.Die(ctx)
	}
	how := "done"
	select {
	case <-time.After(x.For):
	case <-ctx.Done():
		how = "stopped: " + context.Cause(ctx).Error()
		if x.Stubborn {
			time.Sleep(x.For)
		}
	}
	release(how)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case perdure.ActivityInfoFrom(ctx).Attempt < x.FailsTo:
		return "", errors.New("not yet")
	case x.Pending:
		return "", perdure.ErrPending
	default:
		return x.Name, nil
	}
}

// want fails unless no key had two holders.
func (h *holders) want(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.wrong {
		t.Error(w)
	}
}

// wantBegan fails unless activities of instance i-1 began in that order.
func (h *holders) wantBegan(t *testing.T, names ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range names {
		names[i] += " of i-1"
	}
	if !slices.Equal(h.began, names) {
		t.Errorf("began %q, want %q", h.began, names)
	}
}

// addHolders registers what the tests of keys run.
func addHolders(r *perdure.Registry, by *holders) *perdure.Registry {
	perdure.AddActivity(r, "hold", by.run)
	perdure.AddOrchestration(r, "holds", holdsAll)
	return r
}

// holdsAll has all done, and says what became of each.
func holdsAll(ctx *perdure.OrchestrationContext, all []hold) (string, error) {
	fs := make([]*perdure.Future[string], len(all))
	for i, x := range all {
		opts := []perdure.ActivityCallOption{perdure.Exclusive(x.Key)}
		if x.FailsTo > 0 {
			opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute}))
		}
		if x.Short > 0 {
			opts = append(opts, perdure.WithScheduleToCloseTimeout(x.Short))
		}
		name := "hold"
		if x.Unknown {
			name = "unknown"
		}
		fs[i] = perdure.CallActivityByName[string](ctx, name, x, opts...)
	}
	var became []string
	for _, f := range fs {
		name, err := f.Await(ctx)
		activity, failed := errors.AsType[*perdure.ActivityError](err)
		_, cancelled := errors.AsType[*perdure.CancelledError](err)
		switch {
		case failed:
			name = activity.Type
		case cancelled:
			name = "cancelled"
		case err != nil:
			return "", err
		}
		became = append(became, name)
	}
	return strings.Join(became, " "), nil
}

// exclusive runs f on a hub whose activities hold keys.
func exclusive(t *testing.T, o simhub.Options, f func(ctx context.Context, h *hub, by *holders)) {
	t.Helper()
	by := newHolders()
	o.Registry, o.Exclusive = addHolders(perdure.NewRegistry(), by), true
	if o.Intercept == nil {
		o.Intercept = simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		f(ctx, h, by)
		by.want(t)
	})
}

// fifo is the queue of keys.
const fifo = "default.fifo"

func (h *hub) fifoURL() string { return h.Provider.Config().WorkQueues[fifo] }

// keyedWorker is the function of the queue of keys, in an environment of its own.
func (h *hub) keyedWorker(by *holders) *dispatch.Worker {
	return must(dispatch.NewWorker(addHolders(perdure.NewRegistry(), by), h.Provider, &dispatch.WorkerOptions{Queue: fifo, Logger: h.logger()}))
}

func (h *hub) wantEnd(in provider.Instance, want string) {
	h.t.Helper()
	if end := h.finish(in); end.Kind != history.OrchestrationCompleted || string(end.Output) != fmt.Sprintf("%q", want) {
		h.t.Errorf("ended with %s %s, want %q", end.String(), end.Output, want)
	}
}

// Of a key one runs at a time, in the order of their calls; what has other keys runs beside it.
func TestR29OneOfAKeyRunsAtATime(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		var all []hold
		for i := range 25 {
			all = append(all, hold{Key: "a", Name: fmt.Sprint("a", i), For: time.Second}, hold{Key: "b", Name: fmt.Sprint("b", i), For: time.Second})
		}
		more := h.startAs("i-2", "holds", all[:20])
		in := h.start("holds", all)
		h.serveFor(time.Hour)
		for _, of := range []provider.Instance{more, in} {
			if end, err := h.Provider.ReadTerminalEvent(ctx, of.ExecutionID); err != nil || end.Kind != history.OrchestrationCompleted {
				t.Fatalf("%v %v", end.String(), err)
			}
		}
		for _, of := range []string{" of i-1", " of i-2"} {
			n := map[string]int{}
			for _, name := range by.began {
				if strings.HasSuffix(name, of) {
					key := name[:1]
					if want := fmt.Sprint(key, n[key], of); name != want {
						t.Errorf("%s began, and it was the turn of %s", name, want)
					}
					n[key]++
				}
			}
		}
		if len(by.began) != 70 || by.most != 2 {
			t.Errorf("%d began, of %d keys at once: want 70, of 2", len(by.began), by.most)
		}
		h.checkRest()
	})
}

// Interleaving: one of a batch goes back, and what is behind it in its group runs: the order is gone, and FIFO queues want all later ones back.
func TestR29WhatIsBehindAFailureGoesBackWithIt(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1"}, {Key: "a", Name: "a2"}, {Key: "b", Name: "b1", For: time.Second}, {Key: "a", Name: "a3"}})
		h.turn(0)
		refused := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, sends := c.Input.(*sqs.SendMessageBatchInput); sends && *in.QueueUrl == h.Provider.Config().InboxURL && strings.Contains(*in.Entries[0].MessageBody, `"a1"`) {
				refused++
				return errors.New("no connection")
			}
			return next()
		})
		records := h.receive(h.fifoURL())
		failed := h.keyedWorker(by).HandleRecords(ctx, records)
		var bad []string
		for _, r := range records {
			if slices.Contains(failed, r.ID) {
				w, _ := provider.DecodeWorkItem(r.Body)
				bad = append(bad, w.ExclusiveKey)
			}
		}
		if refused == 0 || !slices.Equal(bad, []string{"a", "a", "a"}) {
			t.Errorf("refused %d, went back: %q, want all of a", refused, bad)
		}
		h.interfere(nil)
		h.wantEnd(in, "a1 a2 b1 a3")
		if want := []string{"a1", "a1", "a2", "a3"}; !slices.Equal(slices.DeleteFunc(names(by.began), func(n string) bool { return n == "b1" }), want) {
			t.Errorf("began %q, want %q of a", by.began, want)
		}
		h.checkRest()
	})
}

func names(began []string) (all []string) {
	for _, b := range began {
		name, _, _ := strings.Cut(b, " ")
		all = append(all, name)
	}
	return all
}

// A FIFO queue delays nothing: the next attempt comes by a timer, and others of its key run meanwhile.
func TestR29TheNextAttemptWaitsInNoQueue(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", FailsTo: 3}, {Key: "a", Name: "a2", For: time.Second}})
		h.wantEnd(in, "a1 a2")
		by.wantBegan(t, "a1", "a2", "a1", "a1")
		for _, c := range h.made() {
			if in, gives := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); gives && *in.QueueUrl == h.fifoURL() {
				t.Error("an attempt came to its queue before it was due, and went back")
			}
		}
		h.checkRest()
	})
}

// Whatever dies, at any call: no key has two holders that live, and all ends as without.
func TestR29ACrashAtAnyCallOfAKey(t *testing.T) {
	t.Parallel()
	all := []hold{{Key: "a", Name: "a1"}, {Key: "a", Name: "a2", FailsTo: 2}, {Key: "b", Name: "b1"}, {Key: "a", Name: "a3", For: 5 * time.Second}}
	for _, after := range []bool{false, true} {
		for n, crashed := int64(1), true; crashed; n++ {
			intercept, calls := simhub.CrashAt(n, after)
			exclusive(t, simhub.Options{Environments: 2, Intercept: intercept}, func(_ context.Context, h *hub, _ *holders) {
				h.wantEnd(h.start("holds", all), "a1 a2 b1 a3")
				h.checkRest()
			})
			crashed = calls.Load() >= n
		}
	}
}

// Interleaving: the orchestrator dies behind its sends, and what it sent has run: a copy behind it in its group would begin before any turn has the
// first's outcome. One attempt has one deduplication id.
func TestR29ARepeatedDispatchAddsNoCopy(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1"}})
		h.turn(0)
		records := h.receive(h.fifoURL())
		if failed := h.keyedWorker(by).HandleRecords(ctx, records); len(failed) > 0 {
			t.Fatal(failed)
		}
		o, err := h.Provider.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: in.InstanceID}, provider.Strong)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Provider.RedispatchOrchestration(ctx, o, provider.RedispatchFrom{}); err != nil {
			t.Fatal(err)
		}
		if copies := h.receive(h.fifoURL()); len(copies) > 0 {
			t.Errorf("a copy is there: %s", copies[0].Body)
		}
		h.wantEnd(in, "a1")
		by.wantBegan(t, "a1")
	})
}

// Interleaving: within five minutes SQS takes for a repeat what is sent once more since the first is nowhere. What is sent anew, picked up, or found
// missing by a reconciliation has an id of its own.
func TestR29WhatIsNeededOnceMoreIsNoRepeat(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(ctx context.Context, h *hub, r provider.Record) error{
		"sent anew": func(ctx context.Context, h *hub, r provider.Record) error {
			items, _ := h.Provider.DecodeWorkItems(ctx, []provider.Record{r})
			w := items[0].WorkItem
			w.ResendCount++
			return h.Provider.PutWorkItems(ctx, w)
		},
		"before its time, which no queue waits for": func(ctx context.Context, h *hub, r provider.Record) error {
			items, _ := h.Provider.DecodeWorkItems(ctx, []provider.Record{r})
			w, at := items[0].WorkItem, time.Now().Add(10*time.Second)
			w.ResendCount, w.NotBefore = w.ResendCount+1, &at
			return h.Provider.PutWorkItems(ctx, w)
		},
		"redriven, of a kind that this build cannot read": func(ctx context.Context, h *hub, r provider.Record) error {
			later := r
			later.ID, later.Body = "another", `{"v":99}`
			if err := h.Provider.DeadLetter(ctx, fifo, provider.Unreadable{Record: later, Err: errors.New("for a test")}); err != nil {
				return err
			}
			letters, err := h.Provider.ReceiveDeadLetters(ctx, fifo, time.Minute)
			if err != nil {
				return err
			}
			if err := h.Provider.RedriveDeadLetters(ctx, fifo, letters...); err != nil {
				return err
			}
			unread := h.receive(h.fifoURL())
			if len(unread) != 1 || unread[0].Body != later.Body {
				return fmt.Errorf("it came as %v", unread)
			}
			if err := h.Provider.DeleteRecords(ctx, fifo, unread...); err != nil {
				return err
			}
			return redriven(ctx, h, r)
		},
		"picked up": func(ctx context.Context, h *hub, r provider.Record) error {
			items, _ := h.Provider.DecodeWorkItems(ctx, []provider.Record{r})
			w := items[0].WorkItem
			w.Redrive = w.Redrive.Next(r.ID)
			return h.Provider.PutWorkItems(ctx, w)
		},
		"redriven": redriven,
		"reconciled": func(ctx context.Context, h *hub, _ provider.Record) error {
			_, err := h.Provider.ReconcileInstance(ctx, "i-1", provider.ReconcileOptions{Run: "2026-01-01T00:00:00Z"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
				in := h.start("holds", []hold{{Key: "a", Name: "a1"}})
				h.turn(0)
				records := h.receive(h.fifoURL())
				if err := h.Provider.DeleteRecords(ctx, fifo, records...); err != nil {
					t.Fatal(err)
				}
				if err := again(ctx, h, records[0]); err != nil {
					t.Fatal(err)
				}
				h.wantEnd(in, "a1")
				by.wantBegan(t, "a1")
			})
		})
	}
}

// redriven puts a record into the dead letters, and redrives it.
func redriven(ctx context.Context, h *hub, r provider.Record) error {
	if err := h.Provider.DeadLetter(ctx, fifo, provider.Unreadable{Record: r, Err: errors.New("for a test")}); err != nil {
		return err
	}
	letters, err := h.Provider.ReceiveDeadLetters(ctx, fifo, time.Minute)
	if err != nil {
		return err
	}
	return h.Provider.RedriveDeadLetters(ctx, fifo, letters...)
}

// A worker that dies keeps its key for the lease, and not for what the queue gave the others of its batch.
func TestR29ADeadWorkersKeyIsFreeAfterItsLease(t *testing.T) {
	t.Parallel()
	for name, deaths := range map[string]struct {
		before int // deliveries of the first of the key
		dies   time.Duration
	}{"while it is leased": {0, 10 * time.Second}, "at once, where it was delivered twice before": {2, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, _ *holders) {
				first := h.start("holds", []hold{{Key: "a", Name: "a1", For: time.Minute}})
				h.turn(0)
				for range deaths.before {
					if err := h.Provider.AbandonRecords(ctx, fifo, 0, h.receive(h.fifoURL())...); err != nil {
						t.Error(err)
					}
				}
				second := h.startAs("i-2", "holds", []hold{{Key: "a", Name: "a2"}, {Key: "a", Name: "a3"}})
				h.turn(0)

				began := time.Now()
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if _, renews := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); renews && time.Since(began) > deaths.dies {
						return errors.New("the process is dead")
					}
					return next()
				})
				records := h.receive(h.fifoURL())
				go h.keyedWorker(newHolders()).HandleRecords(ctx, records)
				time.Sleep(deaths.dies + time.Second)
				for len(h.receive(h.fifoURL())) == 0 && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
				}
				if took := time.Since(began); len(records) != 3 || took > deaths.dies+35*time.Second {
					t.Errorf("of %d records the key was free after %v", len(records), took)
				}
				h.interfere(nil)
				h.wantEnd(first, "a1")
				h.wantEnd(second, "a2 a3")
			})
		})
	}
}

// What waits for its key and is cancelled, or whose time is over, is not run when its turn comes.
func TestR29WhatIsOverBeforeItsTurnIsNotRun(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1", For: 20 * time.Second}, {Key: "a", Name: "a2", Short: 10 * time.Second}, {Key: "a", Name: "a3"}, {Key: "a", Name: "a4"},
		})
		go func() {
			time.Sleep(5 * time.Second)
			err := h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
				Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 5, Reason: string(perdure.ReasonRequested),
			})
			if err != nil {
				t.Error(err)
			}
		}()
		h.wantEnd(in, "a1 timeout cancelled a4")
		by.wantBegan(t, "a1", "a4")
		h.checkRest()
	})
}

// Cancelled while it runs, an activity keeps its key until it has ended, or its grace is over.
func TestR29ACancelledHolderLetsTheNextGo(t *testing.T) {
	t.Parallel()
	for name, stubborn := range map[string]bool{"it ends": false, "it is given up": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by := newHolders()
			o := simhub.Options{Registry: addHolders(perdure.NewRegistry(), by), Exclusive: true}
			inBubble(t, o, func(ctx context.Context, h *hub) {
				in := h.start("holds", []hold{{Key: "a", Name: "a1", For: time.Hour, Stubborn: stubborn}, {Key: "a", Name: "a2"}})
				began := time.Now()
				go func() {
					time.Sleep(time.Minute)
					_ = h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 3, Reason: string(perdure.ReasonRequested)})
				}()
				h.serveFor(2 * time.Minute)
				end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
				if err != nil {
					t.Fatal(err)
				}
				if string(end.Output) != `"cancelled a2"` || end.Time.Sub(began) > 75*time.Second {
					t.Errorf("ended with %s after %v", end.Output, end.Time.Sub(began))
				}
				if wrong := len(by.wrong); (wrong > 0) != stubborn { // code that ignores its context is the one thing that holds no key
					t.Errorf("%q", by.wrong)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// Poison blocks its key, and no other; what is behind it runs once it is found.
func TestR29PoisonBlocksItsKeyAlone(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{MaxAttempts: 2}, func(_ context.Context, h *hub, by *holders) {
		began := time.Now()
		in := h.start("holds", []hold{{Key: "a", Name: "a1", Kills: 100}, {Key: "a", Name: "a2"}, {Key: "b", Name: "b1"}})
		h.wantEnd(in, "poison a2 b1")
		if n := by.kills["a1"]; n < 3 || n > 8 {
			t.Errorf("the poison began %d times", n)
		}
		if at := time.Since(began); at < 0 {
			t.Error(at)
		}
	})
}

// A suspect waits for the others of its batch: not for those behind it, which wait for it.
func TestR29ASuspectDoesNotWaitForThoseBehindIt(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, by *holders) {
		began := time.Now()
		in := h.start("holds", []hold{{Key: "a", Name: "a1", Kills: 4, For: 4 * time.Second}, {Key: "a", Name: "a2"}, {Key: "a", Name: "a3"}})
		h.wantEnd(in, "a1 a2 a3")
		end, _ := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID)
		if took := end.Time.Sub(began); took > 40*time.Minute { // two deaths before the lease, of 15 minutes each
			t.Errorf("took %v", took)
		}
		_ = by
	})
}

// A suspect of another key runs alone: not beside those that were behind another when it came into the line.
func TestR29ASuspectWaitsForThoseBehindAnother(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", For: 2 * time.Second}, {Key: "a", Name: "a2", For: 2 * time.Second}, {Key: "b", Name: "b1", For: time.Second}})
		h.turn(0)
		records := h.receive(h.fifoURL())
		for i := range records {
			if w, _ := provider.DecodeWorkItem(records[i].Body); w.ExclusiveKey == "b" {
				records[i].ReceiveCount = 3
				if _, err := h.Provider.PutCrashMarker(ctx, provider.Attempt{ExecutionID: w.ExecutionID, ActivityID: w.ActivityID, Record: records[i]}); err != nil {
					t.Fatal(err)
				}
				records[i].ReceiveCount = 4
			}
		}
		h.keyedWorker(by).HandleRecords(ctx, records)
		if by.most != 1 {
			t.Errorf("%d keys were held at once, and one is a suspect's", by.most)
		}
		h.wantEnd(in, "a1 a2 b1")
		by.wantBegan(t, "a1", "a2", "b1")
	})
}

// An exclusive activity is not completed from outside: its record goes when its function returns, and its key with it.
func TestR29AnExclusiveActivityIsNotPending(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, _ *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", Pending: true}, {Key: "a", Name: "a2"}})
		h.wantEnd(in, "ExclusivePendingError a2")
		h.checkRest()
	})
}

// A hub whose stack has no FIFO queue beside the work queue says so at once, and names what to set.
func TestR29AHubWithoutTheQueueSaysWhatToSet(t *testing.T) {
	t.Parallel()
	by := newHolders()
	inBubble(t, simhub.Options{Registry: addHolders(perdure.NewRegistry(), by)}, func(_ context.Context, h *hub) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1"}})
		h.wantEnd(in, "ExclusiveQueueError")
		events := h.events(in)
		said := ""
		for _, e := range events {
			if e.Kind == history.OutputFailed {
				said = e.Error.Message
			}
		}
		if !strings.Contains(said, `set Exclusive in the WorkQueueProps of "default"`) || len(by.began) > 0 {
			t.Errorf("began %q, said %q", by.began, said)
		}
		h.checkRest()
	})
}

// Interleaving: a process is stopped, and gives its records back before its activities have ended: another begins the next of the key beside them.
func TestR29AStoppedProcessEndsAnActivityBeforeItsKeyIsFree(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", For: 5 * time.Minute}, {Key: "a", Name: "a2"}})
		h.turn(0)
		first := h.keyedWorker(by)
		stop := h.polled(ctx, h.Provider, fifo, first.HandleRecords, dispatch.PollOptions{Renew: first.RenewRecords, GracePeriod: time.Second})
		time.Sleep(10 * time.Second)
		stopped := make(chan error)
		go func() { stopped <- stop() }()
		second := h.keyedWorker(by)
		stopSecond := h.polled(ctx, h.Provider, fifo, second.HandleRecords, dispatch.PollOptions{Renew: second.RenewRecords})
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		if err := stopSecond(); err != nil {
			t.Error(err)
		}
		h.wantEnd(in, "a1 a2")
		by.wantBegan(t, "a1", "a1", "a2")
	})
}

// A pause of their instance stops no attempt: what waits for the key has its turn, and gives the key on.
func TestR29APausedInstancesActivitiesGiveTheKeyOn(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		paused := h.start("holds", []hold{{Key: "a", Name: "a1", For: 10 * time.Second}, {Key: "a", Name: "a2"}})
		h.turn(0)
		h.pause(paused, "p1")
		other := h.startAs("i-2", "holds", []hold{{Key: "a", Name: "b1"}})
		h.wantEnd(other, "b1")
		if got := names(by.began); !slices.Equal(got, []string{"a1", "a2", "b1"}) {
			t.Errorf("began %q", got)
		}
		h.resume(paused, "r1")
		h.wantEnd(paused, "a1 a2")
	})
}

// Interleaving: each message is delivered twice, and the second delivery comes once the first is done with. A work item of an activity that is over is
// not run again.
func TestR29EveryMessageTwice(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1"}, {Key: "a", Name: "a2"}})
		h.turn(0)
		records := h.receive(h.fifoURL())
		w := h.keyedWorker(by)
		if failed := w.HandleRecords(ctx, records); len(failed) > 0 {
			t.Fatal(failed)
		}
		h.turn(0)
		for i := range records {
			records[i].ReceiveCount = 2
		}
		w.HandleRecords(ctx, records)
		h.wantEnd(in, "a1 a2")
		by.wantBegan(t, "a1", "a2")
		h.checkRest()
	})
}

// Interleaving: the first of a batch's key leaves the second no more of the invocation than its end. What would be cut off, and run twice, goes back, and
// has an invocation for itself.
func TestR29WhatWaitsBeginsInTheFirstHalfOfItsInvocation(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{InvocationLimit: 15 * time.Minute}, func(_ context.Context, h *hub, by *holders) {
		var all []hold
		for i := range 4 {
			all = append(all, hold{Key: "a", Name: fmt.Sprint("a", i), For: 6 * time.Minute})
		}
		began := time.Now()
		in := h.start("holds", all)
		h.wantEnd(in, "a0 a1 a2 a3")
		by.wantBegan(t, "a0", "a1", "a2", "a3")
		if end, _ := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID); end.Time.Sub(began) > 24*time.Minute+time.Second {
			t.Errorf("what went back for that was not there at once: all took %v", end.Time.Sub(began))
		}
		h.checkRest()
	})
}

// The same for a process that polls: SQS ends a lock 12 hours after the receive, and what has waited for most of them would lose its own as it runs.
func TestR29WhatWaitsOutlastsNoLock(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", For: 7 * time.Hour}, {Key: "a", Name: "a2", For: 7 * time.Hour}})
		h.turn(0)
		r := addHolders(perdure.NewRegistry(), by)
		w := must(dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{Queue: fifo, Logger: h.logger(), CancelPollInterval: time.Minute}))
		stop := h.polled(ctx, h.Provider, fifo, w.HandleRecords, dispatch.PollOptions{Renew: w.RenewRecords})
		time.Sleep(15 * time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		h.wantEnd(in, "a1 a2")
		by.wantBegan(t, "a1", "a2")
	})
}

// Interleaving: the first of a key cannot run, since no worker knows it, and a FIFO queue delivers nothing behind it. After a while it goes behind the others.
func TestR29WhatNoWorkerKnowsLetsTheOthersOfItsKeyGo(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		began := time.Now()
		h.start("holds", []hold{{Key: "a", Name: "a1", Unknown: true}})
		h.turn(0)
		var behind []hold
		for i := range 12 {
			behind = append(behind, hold{Key: "a", Name: fmt.Sprint("a", i)})
		}
		second := h.startAs("i-2", "holds", behind)
		third := h.startAs("i-3", "holds", []hold{{Key: "b", Name: "b1"}})
		h.serveFor(4 * time.Hour)
		for id, most := range map[string]time.Duration{second.ExecutionID: time.Hour, third.ExecutionID: time.Second} {
			if end, err := h.Provider.ReadTerminalEvent(ctx, id); err != nil || end.Kind != history.OrchestrationCompleted || end.Time.Sub(began) > most {
				t.Errorf("%s ended with %v %v after %v", id, end.Kind, err, end.Time.Sub(began))
			}
		}
		anew := 0
		for _, c := range h.made() {
			if in, sends := c.Input.(*sqs.SendMessageBatchInput); sends && *in.QueueUrl == h.fifoURL() && strings.Contains(*in.Entries[0].MessageBody, `"anew"`) {
				if anew++; strings.Contains(*in.Entries[0].MessageBody, `"notBefore"`) {
					t.Errorf("it was sent anew for later, and its queue delays nothing: %s", *in.Entries[0].MessageBody)
				}
			}
		}
		if anew == 0 {
			t.Error("it was not sent anew")
		}
		if len(by.began) != 13 {
			t.Errorf("%d began, want 13, each once", len(by.began))
		}
	})
}

// A key costs one call: the worker deletes the record, for which the next of the key waits. Beside that its activity makes the same calls.
func TestR29AKeyCostsADelete(t *testing.T) {
	t.Parallel()
	calls := map[bool][]string{}
	for _, keyed := range []bool{true, false} {
		by := newHolders()
		r := addHolders(perdure.NewRegistry(), by)
		perdure.AddOrchestration(r, "one", func(ctx *perdure.OrchestrationContext, x hold) (string, error) {
			var opts []perdure.ActivityCallOption
			if keyed {
				opts = append(opts, perdure.Exclusive(x.Key))
			}
			return perdure.CallActivityByName[string](ctx, "hold", x, opts...).Await(ctx)
		})
		inBubble(t, simhub.Options{Registry: r, Exclusive: true, Intercept: simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })}, func(_ context.Context, h *hub) {
			h.wantEnd(h.start("one", hold{Key: "a", Name: "a1"}), "a1")
			for _, c := range h.made() {
				if c.Operation != "ReceiveMessage" {
					calls[keyed] = append(calls[keyed], c.Operation)
				}
			}
		})
		slices.Sort(calls[keyed]) // the mapping deletes as the next turn is made
	}
	calls[false] = append([]string{"DeleteMessageBatch"}, calls[false]...) // it comes first of all
	if !slices.Equal(calls[true], calls[false]) {
		t.Errorf("with a key: %q, without: %q", calls[true], calls[false])
	}
}

// What waits for its key is leased when the first is, and costs nothing where all are done by then.
func TestR29ShortHoldersTakeNoLease(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, _ *holders) {
		h.wantEnd(h.start("holds", []hold{{Key: "a", Name: "a1", For: time.Second}, {Key: "a", Name: "a2", For: time.Second}}), "a1 a2")
		for _, c := range h.made() {
			if in, leases := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); leases {
				t.Errorf("%d records of %s were leased", len(in.Entries), *in.QueueUrl)
			}
		}
	})
}
