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
	"github.com/perdure/perdure/provider/wire"
)

// hold is the input of an activity with an exclusive key.
type hold struct {
	Key, Name     string
	For           time.Duration
	FailsTo       int           // the attempt that succeeds
	Kills         int           // number of runs that crash their process
	Pending       bool          // returns ErrPending
	IgnoresCancel bool          // ignores the end of its context
	Short         time.Duration // schedule-to-close timeout
	Unknown       bool          // calls an unregistered activity
}

// holders records the holders of keys. It reports an error if a key has two holders whose processes are alive.
type holders struct {
	mu    sync.Mutex
	now   map[string]map[string]func() (died bool)
	most  int // maximum of keys that were held at once
	began []string
	ends  []string
	kills map[string]int
	wrong []string
}

func newHolders() *holders {
	return &holders{now: map[string]map[string]func() bool{}, kills: map[string]int{}}
}

// take records the start of an activity that holds a key. release records its end.
func (h *holders) take(ctx context.Context, key, name string) (release func(how string)) {
	name += " of " + perdure.ActivityInfoFrom(ctx).InstanceID
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began = append(h.began, name)
	for other, died := range h.now[key] {
		if !died() {
			h.wrong = append(h.wrong, fmt.Sprintf("%s started while %s holds the key %q", name, other, key))
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

// run is the activity "hold".
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
		if x.IgnoresCancel {
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

// want fails the test if a key had two holders.
func (h *holders) want(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.wrong {
		t.Error(w)
	}
}

// wantStarts fails the test unless activities of instance i-1 started in that order.
func (h *holders) wantStarts(t *testing.T, names ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range names {
		names[i] += " of i-1"
	}
	if !slices.Equal(h.began, names) {
		t.Errorf("got starts %q, want %q", h.began, names)
	}
}

// addHolders registers the activity "hold" and the orchestration "holds".
func addHolders(r *perdure.Registry, by *holders) *perdure.Registry {
	perdure.AddActivity(r, "hold", by.run)
	perdure.AddOrchestration(r, "holds", holdsAll)
	return r
}

// holdsAll calls all activities, and returns their results or error types.
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

// exclusive runs f on a hub whose activities hold keys, and fails the test if a key had two holders.
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

// fifo is the name of the FIFO work queue.
const fifo = "default.fifo"

// fifoURL returns the URL of the FIFO work queue.
func (h *hub) fifoURL() string { return h.Provider.Config().WorkQueues[fifo] }

// keyedWorker returns a new worker for the FIFO work queue.
func (h *hub) keyedWorker(by *holders) *dispatch.Worker {
	o := &dispatch.WorkerOptions{Queue: fifo, Logger: h.logger()}
	return must(dispatch.NewWorker(addHolders(perdure.NewRegistry(), by), h.Provider, o))
}

// wantEnd fails the test unless the instance completes with the string want.
func (h *hub) wantEnd(in provider.Instance, want string) {
	h.t.Helper()
	end := h.finish(in)
	if end.Kind != history.OrchestrationCompleted || string(end.Output) != fmt.Sprintf("%q", want) {
		h.t.Errorf("ended with %s %s, want %q", end.String(), end.Output, want)
	}
}

// Activities of a key run in sequence, in the order of their calls. Activities of other keys run concurrently.
func TestR29_activitiesOfAKey_runInSequence(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		var all []hold
		for i := range 25 {
			all = append(all,
				hold{Key: "a", Name: fmt.Sprint("a", i), For: time.Second},
				hold{Key: "b", Name: fmt.Sprint("b", i), For: time.Second})
		}
		more := h.startAs("i-2", "holds", all[:20])
		in := h.start("holds", all)
		h.serveFor(time.Hour)
		for _, of := range []provider.Instance{more, in} {
			end, err := h.Provider.ReadTerminalEvent(ctx, of.ExecutionID)
			if err != nil || end.Kind != history.OrchestrationCompleted {
				t.Fatalf("ended with %v, %v, want completed", end.String(), err)
			}
		}
		for _, of := range []string{" of i-1", " of i-2"} {
			n := map[string]int{}
			for _, name := range by.began {
				if strings.HasSuffix(name, of) {
					key := name[:1]
					if want := fmt.Sprint(key, n[key], of); name != want {
						t.Errorf("%s started, want %s", name, want)
					}
					n[key]++
				}
			}
		}
		if len(by.began) != 70 || by.most != 2 {
			t.Errorf("got %d starts, at most %d keys at once, want 70 and 2", len(by.began), by.most)
		}
		h.checkIdle()
	})
}

// If a record of a FIFO queue fails, all later records of its group in the batch also fail, so that their order is
// preserved.
func TestR29_recordFails_laterRecordsOfItsKeyFail(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1"},
			{Key: "a", Name: "a2"},
			{Key: "b", Name: "b1", For: time.Second},
			{Key: "a", Name: "a3"},
		})
		h.turn(0)
		refused := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			in, sends := c.Input.(*sqs.SendMessageBatchInput)
			if sends && *in.QueueUrl == h.Provider.Config().InboxURL &&
				strings.Contains(*in.Entries[0].MessageBody, `"a1"`) {
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
				w, _ := wire.DecodeWorkItem(r.Body)
				bad = append(bad, w.ExclusiveKey)
			}
		}
		if refused == 0 || !slices.Equal(bad, []string{"a", "a", "a"}) {
			t.Errorf("got %d rejected sends and failed records of keys %q, want all three of a", refused, bad)
		}
		h.interfere(nil)
		h.wantEnd(in, "a1 a2 b1 a3")
		ofA := slices.DeleteFunc(names(by.began), func(n string) bool { return n == "b1" })
		if want := []string{"a1", "a1", "a2", "a3"}; !slices.Equal(ofA, want) {
			t.Errorf("got starts %q, want %q of key a", by.began, want)
		}
		h.checkIdle()
	})
}

// names returns the names of started activities without their instances.
func names(began []string) (all []string) {
	for _, b := range began {
		name, _, _ := strings.Cut(b, " ")
		all = append(all, name)
	}
	return all
}

// A FIFO queue cannot delay a message. A timer sends the next attempt, and other activities of the key run in between.
func TestR29_nextAttemptIsDelayed_isSentByATimer(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", FailsTo: 3}, {Key: "a", Name: "a2", For: time.Second}})
		h.wantEnd(in, "a1 a2")
		by.wantStarts(t, "a1", "a2", "a1", "a1")
		for _, c := range h.made() {
			if in, ok := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); ok && *in.QueueUrl == h.fifoURL() {
				t.Error("an attempt was sent before it was due, and was released")
			}
		}
		h.checkIdle()
	})
}

// A process crashes at each call. No key has two holders with live processes, and the result is the same.
func TestR29_crashAtAnyCall_keyHasOneHolder(t *testing.T) {
	t.Parallel()
	all := []hold{
		{Key: "a", Name: "a1"},
		{Key: "a", Name: "a2", FailsTo: 2},
		{Key: "b", Name: "b1"},
		{Key: "a", Name: "a3", For: 5 * time.Second},
	}
	for _, after := range []bool{false, true} {
		for n, crashed := int64(1), true; crashed; n++ {
			intercept, calls := simhub.CrashAt(n, after)
			exclusive(t, simhub.Options{Environments: 2, Intercept: intercept},
				func(_ context.Context, h *hub, _ *holders) {
					h.wantEnd(h.start("holds", all), "a1 a2 b1 a3")
					h.checkIdle()
				})
			crashed = calls.Load() >= n
		}
	}
}

//  1. A session sends an activity and crashes. The activity runs.
//  2. The redispatch sends the same attempt with the same deduplication ID, so SQS drops it. A copy could otherwise
//     start before a turn receives the first outcome.
func TestR29_redispatch_sendsNoCopy(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1"}})
		h.turn(0)
		records := h.receive(h.fifoURL())
		if failed := h.keyedWorker(by).HandleRecords(ctx, records); len(failed) > 0 {
			t.Fatal(failed)
		}
		o, err := h.Provider.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: in.InstanceID},
			provider.Strong)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Provider.RedispatchOrchestration(ctx, o, provider.RedispatchFrom{}); err != nil {
			t.Fatal(err)
		}
		if copies := h.receive(h.fifoURL()); len(copies) > 0 {
			t.Errorf("got a copy of the work item: %s", copies[0].Body)
		}
		h.wantEnd(in, "a1")
		by.wantStarts(t, "a1")
	})
}

// The record of an activity is lost, and the activity is sent again within the deduplication interval of five minutes.
// Each kind of send has its own deduplication ID, so SQS does not drop the message.
func TestR29_lostWorkItemIsSentAgain_isNotDeduplicated(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(ctx context.Context, h *hub, r provider.Record) error{
		"sent again": func(ctx context.Context, h *hub, r provider.Record) error {
			items, _ := h.Provider.DecodeWorkItems(ctx, []provider.Record{r})
			w := items[0].WorkItem
			w.ResendCount++
			return h.Provider.PutWorkItems(ctx, w)
		},
		"sent again before its due time": func(ctx context.Context, h *hub, r provider.Record) error {
			items, _ := h.Provider.DecodeWorkItems(ctx, []provider.Record{r})
			w, at := items[0].WorkItem, time.Now().Add(10*time.Second)
			w.ResendCount, w.NotBefore = w.ResendCount+1, &at
			return h.Provider.PutWorkItems(ctx, w)
		},
		"redriven after an unreadable record": func(ctx context.Context, h *hub, r provider.Record) error {
			later := r
			later.ID, later.Body = "another", `{"v":99}`
			unreadable := provider.Unreadable{Record: later, Err: errors.New("for a test")}
			if err := h.Provider.DeadLetter(ctx, fifo, unreadable); err != nil {
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
				return fmt.Errorf("got records %v, want the unreadable one", unread)
			}
			if err := h.Provider.DeleteRecords(ctx, fifo, unread...); err != nil {
				return err
			}
			return redriven(ctx, h, r)
		},
		"recovered": func(ctx context.Context, h *hub, r provider.Record) error {
			items, _ := h.Provider.DecodeWorkItems(ctx, []provider.Record{r})
			w := items[0].WorkItem
			w.Redrive = w.Redrive.Next(r.ID)
			return h.Provider.PutWorkItems(ctx, w)
		},
		"redriven": redriven,
		"reconciled": func(ctx context.Context, h *hub, _ provider.Record) error {
			o := provider.ReconcileOptions{Run: "2026-01-01T00:00:00Z"}
			_, err := h.Provider.ReconcileInstance(ctx, "i-1", o)
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
				by.wantStarts(t, "a1")
			})
		})
	}
}

// redriven copies a record to the dead-letter queue and redrives it.
func redriven(ctx context.Context, h *hub, r provider.Record) error {
	unreadable := provider.Unreadable{Record: r, Err: errors.New("for a test")}
	if err := h.Provider.DeadLetter(ctx, fifo, unreadable); err != nil {
		return err
	}
	letters, err := h.Provider.ReceiveDeadLetters(ctx, fifo, time.Minute)
	if err != nil {
		return err
	}
	return h.Provider.RedriveDeadLetters(ctx, fifo, letters...)
}

// A worker that crashes holds its key until its lease expires, not for the visibility timeout of the other records of
// its batch.
func TestR29_workerDies_keyIsFreeAfterItsLease(t *testing.T) {
	t.Parallel()
	for name, crashCount := range map[string]struct {
		before int // earlier deliveries of the first record of the key
		dies   time.Duration
	}{"with a lease": {0, 10 * time.Second}, "at once in the third delivery": {2, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, _ *holders) {
				first := h.start("holds", []hold{{Key: "a", Name: "a1", For: time.Minute}})
				h.turn(0)
				for range crashCount.before {
					if err := h.Provider.AbandonRecords(ctx, fifo, 0, h.receive(h.fifoURL())...); err != nil {
						t.Error(err)
					}
				}
				second := h.startAs("i-2", "holds", []hold{{Key: "a", Name: "a2"}, {Key: "a", Name: "a3"}})
				h.turn(0)

				began := time.Now()
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if _, renews := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); renews &&
						time.Since(began) > crashCount.dies {
						return errors.New("the process is dead")
					}
					return next()
				})
				records := h.receive(h.fifoURL())
				go h.keyedWorker(newHolders()).HandleRecords(ctx, records)
				time.Sleep(crashCount.dies + time.Second)
				for len(h.receive(h.fifoURL())) == 0 && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
				}
				if took := time.Since(began); len(records) != 3 || took > crashCount.dies+35*time.Second {
					t.Errorf("got %d records, and the key was free after %v, want 3 within the lease",
						len(records), took)
				}
				h.interfere(nil)
				h.wantEnd(first, "a1")
				h.wantEnd(second, "a2 a3")
			})
		})
	}
}

// An activity that waits for its key does not run if it is cancelled or its timeout expires in the meantime.
func TestR29_waitingActivityEnds_isNotRun(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1", For: 20 * time.Second},
			{Key: "a", Name: "a2", Short: 10 * time.Second},
			{Key: "a", Name: "a3"},
			{Key: "a", Name: "a4"},
		})
		go func() {
			time.Sleep(5 * time.Second)
			err := h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
				Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 5,
				Reason: string(perdure.ReasonRequested),
			})
			if err != nil {
				t.Error(err)
			}
		}()
		h.wantEnd(in, "a1 timeout cancelled a4")
		by.wantStarts(t, "a1", "a4")
		h.checkIdle()
	})
}

// A cancelled activity holds its key until it returns or its grace period ends.
func TestR29_holderIsCancelled_nextActivityRuns(t *testing.T) {
	t.Parallel()
	for name, ignoresCancel := range map[string]bool{"returns": false, "is abandoned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by := newHolders()
			o := simhub.Options{Registry: addHolders(perdure.NewRegistry(), by), Exclusive: true}
			inBubble(t, o, func(ctx context.Context, h *hub) {
				all := []hold{
					{Key: "a", Name: "a1", For: time.Hour, IgnoresCancel: ignoresCancel}, {Key: "a", Name: "a2"},
				}
				in := h.start("holds", all)
				began := time.Now()
				go func() {
					time.Sleep(time.Minute)
					_ = h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
						Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 3,
						Reason: string(perdure.ReasonRequested),
					})
				}()
				h.serveFor(2 * time.Minute)
				end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
				if err != nil {
					t.Fatal(err)
				}
				if string(end.Output) != `"cancelled a2"` || end.Time.Sub(began) > 75*time.Second {
					t.Errorf("ended with %s after %v, want the cancellation and a2 within 75s",
						end.Output, end.Time.Sub(began))
				}
				if wrong := len(by.wrong); (wrong > 0) != ignoresCancel { // abandoned code does not hold its key
					t.Errorf("got violations %q, want some: %v", by.wrong, ignoresCancel)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// A poison activity blocks only its key. The next activities of the key run once the worker has recognized the poison.
func TestR29_poison_blocksOnlyItsKey(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{MaxAttempts: 2}, func(_ context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1", Kills: 100}, {Key: "a", Name: "a2"}, {Key: "b", Name: "b1"},
		})
		h.wantEnd(in, "poison a2 b1")
		if n := by.kills["a1"]; n < 3 || n > 8 {
			t.Errorf("got %d runs of the poison activity, want 3 to 8", n)
		}
		var settled []string
		for _, e := range h.events(in) {
			switch e.Kind {
			case history.ActivityCompleted:
				settled = append(settled, string(e.Result))
			case history.ActivityFailed:
				settled = append(settled, e.Error.Type)
			}
		}
		// the activity of the other key does not wait for the poison activity, but the next activity of its key does
		if want := []string{`"b1"`, "poison", `"a2"`}; !slices.Equal(settled, want) {
			t.Errorf("activities ended in the order %q, want %q", settled, want)
		}
	})
}

// A suspect waits for the other records of its batch, but not for records of its key, which wait for the suspect.
func TestR29_suspect_doesNotWaitForItsOwnKey(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, by *holders) {
		began := time.Now()
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1", Kills: 4, For: 4 * time.Second}, {Key: "a", Name: "a2"}, {Key: "a", Name: "a3"},
		})
		h.wantEnd(in, "a1 a2 a3")
		end, _ := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID)
		if took := end.Time.Sub(began); took > 40*time.Minute { // two crashes without a lease cost 15 minutes each
			t.Errorf("ended after %v, want at most 40m", took)
		}
		_ = by
	})
}

// A suspect runs alone. Activities of another key that waited for their key when the suspect arrived run before it.
func TestR29_suspect_waitsForOtherKeys(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1", For: 2 * time.Second},
			{Key: "a", Name: "a2", For: 2 * time.Second},
			{Key: "b", Name: "b1", For: time.Second},
		})
		h.turn(0)
		records := h.receive(h.fifoURL())
		for i := range records {
			if w, _ := wire.DecodeWorkItem(records[i].Body); w.ExclusiveKey == "b" {
				records[i].ReceiveCount = 3
				attempt := provider.Delivery{ExecutionID: w.ExecutionID, ActivityID: w.ActivityID, Record: records[i]}
				if _, err := h.Provider.PutCrashMarker(ctx, attempt); err != nil {
					t.Fatal(err)
				}
				records[i].ReceiveCount = 4
			}
		}
		h.keyedWorker(by).HandleRecords(ctx, records)
		if by.most != 1 {
			t.Errorf("got %d keys held at once, want 1 while a suspect runs", by.most)
		}
		h.wantEnd(in, "a1 a2 b1")
		by.wantStarts(t, "a1", "a2", "b1")
	})
}

// An exclusive activity cannot complete asynchronously, because its key is released when its function returns.
func TestR29_activityReturnsErrPending_fails(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, _ *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", Pending: true}, {Key: "a", Name: "a2"}})
		h.wantEnd(in, "ExclusivePendingError a2")
		h.checkIdle()
	})
}

// If the work queue has no FIFO queue, the activity fails with an error that names the setting.
func TestR29_queueIsMissing_errorNamesTheSetting(t *testing.T) {
	t.Parallel()
	by := newHolders()
	inBubble(t, simhub.Options{Registry: addHolders(perdure.NewRegistry(), by)}, func(_ context.Context, h *hub) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1"}})
		h.wantEnd(in, "ExclusiveQueueError")
		events := h.events(in)
		printed := ""
		for _, e := range events {
			if e.Kind == history.OutputFailed {
				printed = e.Error.Message
			}
		}
		if !strings.Contains(printed, `set Exclusive in the WorkQueueProps of "default"`) || len(by.began) > 0 {
			t.Errorf("got starts %q and error %q, want none and the setting", by.began, printed)
		}
		h.checkIdle()
	})
}

// A process stops. It releases its records only after its activities have returned. Otherwise another process would
// start the next activity of the key.
func TestR29_processStops_activityEndsBeforeItsKeyIsFree(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{{Key: "a", Name: "a1", For: 5 * time.Minute}, {Key: "a", Name: "a2"}})
		h.turn(0)
		first := h.keyedWorker(by)
		o := dispatch.PollOptions{Renew: first.RenewRecords, GracePeriod: time.Second}
		stop := h.polled(ctx, h.Provider, fifo, first.HandleRecords, o)
		time.Sleep(10 * time.Second)
		stopped := make(chan error)
		go func() { stopped <- stop() }()
		second := h.keyedWorker(by)
		o = dispatch.PollOptions{Renew: second.RenewRecords}
		stopSecond := h.polled(ctx, h.Provider, fifo, second.HandleRecords, o)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		if err := stopSecond(); err != nil {
			t.Error(err)
		}
		h.wantEnd(in, "a1 a2")
		by.wantStarts(t, "a1", "a1", "a2")
	})
}

// A paused instance still runs its scheduled activities, so their key becomes free for other instances.
func TestR29_instanceIsPaused_keyIsReleased(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		paused := h.start("holds", []hold{{Key: "a", Name: "a1", For: 10 * time.Second}, {Key: "a", Name: "a2"}})
		h.turn(0)
		h.pause(paused, "p1")
		other := h.startAs("i-2", "holds", []hold{{Key: "a", Name: "b1"}})
		h.wantEnd(other, "b1")
		if got := names(by.began); !slices.Equal(got, []string{"a1", "a2", "b1"}) {
			t.Errorf("got starts %q, want a1, a2, b1", got)
		}
		h.resume(paused, "r1")
		h.wantEnd(paused, "a1 a2")
	})
}

// Each record is delivered a second time after its activity has ended. The activity does not run again.
func TestR29_everyRecordTwice_activityRunsOnce(t *testing.T) {
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
		by.wantStarts(t, "a1", "a2")
		h.checkIdle()
	})
}

// An activity waits for its key for most of an invocation. The worker releases its record instead of starting the
// activity, and the next invocation runs the activity with its full time.
func TestR29_keyIsFreeLateInTheInvocation_activityRunsInTheNext(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{InvocationLimit: 15 * time.Minute}, func(_ context.Context, h *hub, by *holders) {
		var all []hold
		for i := range 4 {
			all = append(all, hold{Key: "a", Name: fmt.Sprint("a", i), For: 6 * time.Minute})
		}
		began := time.Now()
		in := h.start("holds", all)
		h.wantEnd(in, "a0 a1 a2 a3")
		by.wantStarts(t, "a0", "a1", "a2", "a3")
		end, _ := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID)
		if end.Time.Sub(began) > 24*time.Minute+time.Second {
			t.Errorf("all activities took %v, want 24m: the released records were not redelivered at once",
				end.Time.Sub(began))
		}
		h.checkIdle()
	})
}

// A polling process also releases such a record, because SQS ends a lock 12 hours after the receive. An activity that
// has waited for most of that time would lose its lock.
func TestR29_activityWaitsForHours_keepsItsLock(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(ctx context.Context, h *hub, by *holders) {
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1", For: 7 * time.Hour}, {Key: "a", Name: "a2", For: 7 * time.Hour},
		})
		h.turn(0)
		r := addHolders(perdure.NewRegistry(), by)
		w := must(dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{
			Queue: fifo, Logger: h.logger(), CancelPollInterval: time.Minute,
		}))
		stop := h.polled(ctx, h.Provider, fifo, w.HandleRecords, dispatch.PollOptions{Renew: w.RenewRecords})
		time.Sleep(15 * time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		h.wantEnd(in, "a1 a2")
		by.wantStarts(t, "a1", "a2")
	})
}

// No worker registers the first activity of a key, and a FIFO queue delivers no later record of the key. After some
// deliveries, the worker resends the work item behind the others.
func TestR29_activityIsUnknown_othersOfItsKeyRun(t *testing.T) {
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
			end, err := h.Provider.ReadTerminalEvent(ctx, id)
			if err != nil || end.Kind != history.OrchestrationCompleted || end.Time.Sub(began) > most {
				t.Errorf("%s ended with %v %v after %v, want completed within %v",
					id, end.Kind, err, end.Time.Sub(began), most)
			}
		}
		anew := 0
		for _, c := range h.made() {
			in, sends := c.Input.(*sqs.SendMessageBatchInput)
			if !sends || *in.QueueUrl != h.fifoURL() {
				continue
			}
			if body := *in.Entries[0].MessageBody; strings.Contains(body, `"anew"`) {
				if anew++; strings.Contains(body, `"notBefore"`) {
					t.Errorf("the work item has a due time, but a FIFO queue cannot delay it: %s", body)
				}
			}
		}
		if anew == 0 {
			t.Error("the work item was not sent again")
		}
		if len(by.began) != 13 {
			t.Errorf("got %d starts, want 13, one of each", len(by.began))
		}
	})
}

// A key costs one additional call, because the worker deletes the record before the next record of the key runs.
func TestR29_key_costsADelete(t *testing.T) {
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
		o := simhub.Options{Registry: r, Exclusive: true}
		o.Intercept = simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })
		inBubble(t, o, func(_ context.Context, h *hub) {
			h.wantEnd(h.start("one", hold{Key: "a", Name: "a1"}), "a1")
			for _, c := range h.made() {
				if c.Operation != "ReceiveMessage" {
					calls[keyed] = append(calls[keyed], c.Operation)
				}
			}
		})
		slices.Sort(calls[keyed]) // the mapping deletes concurrently with the next turn
	}
	calls[false] = append([]string{"DeleteMessageBatch"}, calls[false]...) // it is first in sort order
	if !slices.Equal(calls[true], calls[false]) {
		t.Errorf("got calls %q with a key, %q without", calls[true], calls[false])
	}
}

// The worker leases waiting records together with the record that holds the key. If all activities are short, the
// worker takes no lease.
func TestR29_shortActivities_takeNoLease(t *testing.T) {
	t.Parallel()
	exclusive(t, simhub.Options{}, func(_ context.Context, h *hub, _ *holders) {
		in := h.start("holds", []hold{
			{Key: "a", Name: "a1", For: time.Second}, {Key: "a", Name: "a2", For: time.Second},
		})
		h.wantEnd(in, "a1 a2")
		for _, c := range h.made() {
			if in, leases := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); leases {
				t.Errorf("got a lease of %d records of %s, want none", len(in.Entries), *in.QueueUrl)
			}
		}
	})
}
