package dispatch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// job configures a test activity. The activity runs for Takes, and may observe its context. After the end of its
// context, it runs for Longer.
type job struct {
	Takes   time.Duration
	Ignores bool
	Longer  time.Duration
	Fails   bool // after the end of its context
	Panics  bool // after the end of its context
	Brief   bool // calls the activity "brief" instead of "job"
}

var (
	forever       = job{Takes: 1000 * time.Hour}
	ignoresCancel = job{Takes: 2 * time.Hour, Ignores: true}
)

// journal is a log that tests can read while the worker writes it.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// jobHub is a hub with the activity "job". It records what the activities observe.
type jobHub struct {
	*hub

	log journal

	mu           sync.Mutex
	runs         int
	causes       map[int64]error // by activity ID, observed at seen
	seen         map[int64]time.Time
	observations []observation
}

// observation is the moment at which an activity observed the end of its context.
type observation struct {
	instance string
	at       time.Time
}

// do is the activity "job".
func (f *jobHub) do(ctx context.Context, j job) (string, error) {
	f.mu.Lock()
	f.runs++
	f.mu.Unlock()
	if j.Ignores {
		time.Sleep(j.Takes)
		return "done", nil
	}
	select {
	case <-time.After(j.Takes):
		return "done", nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	i := perdure.ActivityInfoFrom(ctx)
	f.causes[i.ActivityID], f.seen[i.ActivityID] = context.Cause(ctx), time.Now()
	f.observations = append(f.observations, observation{i.InstanceID, time.Now()})
	f.mu.Unlock()
	time.Sleep(j.Longer)
	switch {
	case j.Panics:
		panic("a secret")
	case j.Fails:
		return "", errors.New("failed in the end")
	case j.Longer > 0:
		return "done in the end", nil
	}
	return "", context.Cause(ctx)
}

// registry returns the activity "job" and the orchestration "jobs", which calls jobs concurrently.
func (f *jobHub) registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "job", f.do)
	perdure.AddOrchestration(r, "jobs", func(ctx *perdure.OrchestrationContext, jobs []job) (int, error) {
		var fs []perdure.Awaitable
		for _, j := range jobs {
			name := "job"
			if j.Brief {
				name = "brief"
			}
			fs = append(fs, perdure.CallActivityByName[string](ctx, name, j))
		}
		return len(jobs), perdure.WhenAll(ctx, fs...)
	})
	return r
}

// onJobHub runs test in virtual time. Then it waits until abandoned activities have returned.
func onJobHub(t *testing.T, test func(ctx context.Context, f *jobHub)) {
	t.Helper()
	f := &jobHub{causes: map[int64]error{}, seen: map[int64]time.Time{}}
	inBubble(t, simhub.Options{Registry: f.registry()}, func(ctx context.Context, h *hub) {
		f.hub = h
		test(ctx, f)
		time.Sleep(3 * time.Hour)
	})
}

// worker creates a worker with options that differ from the defaults.
func (f *jobHub) worker(change func(o *dispatch.WorkerOptions)) *dispatch.Worker {
	return f.workerOf(f.registry(), change)
}

// workerOf creates a worker with another registry.
func (f *jobHub) workerOf(r *perdure.Registry, change func(o *dispatch.WorkerOptions)) *dispatch.Worker {
	o := dispatch.WorkerOptions{Logger: slog.New(slog.NewTextHandler(&f.log, nil))}
	if change != nil {
		change(&o)
	}
	return must(dispatch.NewWorker(r, f.Provider, &o))
}

// jobsOf starts an instance and runs its first turn. The work queue then contains the activities #3, #4, ….
func (f *jobHub) jobsOf(id string, jobs ...job) provider.Instance {
	f.t.Helper()
	in := f.startAs(id, "jobs", jobs)
	f.turn(0)
	return in
}

// handled passes the visible records to a worker, and returns a channel with the records that fail.
func (f *jobHub) handled(ctx context.Context, w *dispatch.Worker) <-chan []string {
	records := f.receive("sim://default")
	over := make(chan []string, 1)
	go func() { over <- f.mapped(ctx, w, records) }()
	synctest.Wait()
	return over
}

// mapped passes records to a worker and deletes the finished records, like an event source mapping.
func (f *jobHub) mapped(ctx context.Context, w *dispatch.Worker, records []provider.Record) (failed []string) {
	failed = w.HandleRecords(ctx, records)
	done := slices.DeleteFunc(slices.Clone(records), func(r provider.Record) bool {
		return slices.Contains(failed, r.ID)
	})
	f.deleteAsMapping("sim://default", done)
	return failed
}

// deleteAsMapping deletes records as the event source mapping does. operations does not list these calls.
func (h *hub) deleteAsMapping(queueURL string, records []provider.Record) {
	for i := range records {
		_, _ = h.Cloud.Queues.DeleteMessage(h.t.Context(), &sqs.DeleteMessageInput{
			QueueUrl: &queueURL, ReceiptHandle: &records[i].ReceiptHandle,
		})
	}
}

// cancel commits a turn that cancels the activities ids.
func (f *jobHub) cancel(in provider.Instance, ids ...int64) {
	f.t.Helper()
	o, err := f.Provider.ReadOrchestration(f.t.Context(), &provider.OrchestrationItem{InstanceID: in.InstanceID},
		provider.Strong)
	if err != nil {
		f.t.Fatal(err)
	}
	events, err := o.Events()
	if err != nil {
		f.t.Fatal(err)
	}
	t := &provider.Turn{InstanceID: in.InstanceID, Head: o.Head, Watermark: o.Head.Watermark}
	for i, id := range ids {
		t.Events = append(t.Events, history.Event{
			ID: events[len(events)-1].ID + 1 + int64(i), Kind: history.ActivityCancelRequested,
			Time: time.Now().UTC(), SourceEventID: id, Reason: string(perdure.ReasonSelectLoser),
			Message: "too slow", RequestedBy: history.RequestedByOrchestration,
		})
	}
	t.Cancels = provider.CancelsOf(t.Events)
	var before provider.CancelBlock
	for i := range o.Segments {
		before, _ = before.Add(o.Segments[i].Sequence, provider.CancelsOf(o.Segments[i].Events))
	}
	t.CancelsAfter = &before.Last
	if _, err := f.Provider.AckOrchestrationItem(f.t.Context(), t); err != nil {
		f.t.Fatal(err)
	}
}

// cause returns the cause with which an activity's context ended, and the time at which the activity observed the end.
func (f *jobHub) cause(id int64) (at time.Time, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[id], f.causes[id]
}

// observedAt returns the time at which activity #3 observed the end of its context.
func (f *jobHub) observedAt() time.Time {
	at, _ := f.cause(3)
	return at
}

// ran returns the number of runs.
func (f *jobHub) ran() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs
}

// failing returns a switch. Calls of the operation fail while the switch is on.
func (f *jobHub) failing(operation string) (on *atomic.Bool) {
	on = &atomic.Bool{}
	f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if on.Load() && c.Operation == operation {
			return errors.New("refused")
		}
		return next()
	})
	return on
}

// wantCause fails the test unless the context of activity id ended with a cancellation for the reason want.
func (f *jobHub) wantCause(id int64, want perdure.CancelReason) {
	f.t.Helper()
	_, cause := f.cause(id)
	c, ok := errors.AsType[*perdure.CancelledError](cause)
	if !ok || c.Reason != want || !errors.Is(c, context.Canceled) {
		f.t.Errorf("the context of #%d ended with %v, want %s", id, cause, want)
	}
}

// sent returns the outcomes that workers have sent to the inbox.
func (f *jobHub) sent() (all []provider.ActivityOutcome) {
	for _, c := range f.made() {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || *in.QueueUrl != f.Provider.Config().InboxURL {
			continue
		}
		for i := range in.Entries {
			m, err := wire.DecodeMessage(*in.Entries[i].MessageBody)
			if err != nil {
				f.t.Fatal(err)
			}
			all = append(all, m.Outcomes...)
		}
	}
	return all
}

// wantSent fails the test unless workers have sent want outcomes.
func (f *jobHub) wantSent(want int) {
	f.t.Helper()
	if got := f.sent(); len(got) != want {
		f.t.Errorf("%d outcomes were sent, want %d: %+v", len(got), want, got)
	}
}

// wantNoRedelivery fails the test if the work queue delivers a record within 20 minutes.
func (f *jobHub) wantNoRedelivery() {
	f.t.Helper()
	time.Sleep(20 * time.Minute)
	if got := f.receive("sim://default"); len(got) > 0 {
		f.t.Errorf("got %d redelivered records, want none", len(got))
	}
}

// wantNoCalls fails the test if the worker makes any call within five minutes.
func (f *jobHub) wantNoCalls() {
	f.t.Helper()
	synctest.Wait() // a poll may be due at this instant
	made := len(f.made())
	time.Sleep(5 * time.Minute)
	if ops := f.operations(made); len(ops) > 0 {
		f.t.Errorf("got %d calls after the activities ended, want none: %v …", len(ops), ops[:min(len(ops), 5)])
	}
}

// polls returns the number of reads of cancel records.
func (f *jobHub) polls() (n int) {
	for _, c := range f.made() {
		if readsCancels(c) {
			n++
		}
	}
	return n
}

// leases lists the changes of visibility timeouts: the number of records and the new timeout.
func (f *jobHub) leases() (changes []string) {
	for _, c := range f.made() {
		if in, ok := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); ok {
			changes = append(changes, fmt.Sprintf("%d for %ds", len(in.Entries), in.Entries[0].VisibilityTimeout))
		}
	}
	return changes
}

// The worker runs in a function that Lambda invokes with records, or in a process that polls the queue.
func TestActivity_cancelledWhileItRuns_observesItThroughItsContext(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{false, true} {
		t.Run(map[bool]string{false: "pushed", true: "polled"}[polled], func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				in := f.jobsOf("a", forever)
				w := f.worker(nil)
				over, stop := (<-chan []string)(nil), func() error { return nil }
				if polled {
					stop = f.polled(ctx, f.Provider, "default", w.HandleRecords, dispatch.PollOptions{Concurrency: 1})
				} else {
					over = f.handled(ctx, w)
				}
				time.Sleep(5500 * time.Millisecond)
				f.cancel(in, 3)
				queried := time.Now()
				if over != nil {
					if failed := <-over; len(failed) > 0 {
						t.Errorf("failed %v", failed)
					}
				}
				time.Sleep(5 * time.Second)
				f.wantCause(3, perdure.ReasonSelectLoser)
				at, cause := f.cause(3)
				if c, ok := errors.AsType[*perdure.CancelledError](cause); !ok || c.Message != "too slow" {
					t.Errorf("got cause %v, want a CancelledError with the message of the cancellation", cause)
				}
				if took := at.Sub(queried); took < 0 || took > time.Second {
					t.Errorf("the activity observed the cancellation after %v, want at most 1s", took)
				}
				f.wantSent(1) // the turn drops this outcome
				if err := stop(); err != nil {
					t.Error(err)
				}
				f.wantNoRedelivery()
			})
		})
	}
}

func TestActivity_cancelledBeforeItsStart_neverRuns(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, job{}, job{})
		f.cancel(in, 3, 4)
		if failed := <-f.handled(ctx, f.worker(nil)); len(failed) > 0 || f.ran() != 1 {
			t.Errorf("got %d runs and failed records %v, want 1 run and none failed", f.ran(), failed)
		}
		if got := f.sent(); len(got) != 1 || got[0].ActivityID != 5 {
			t.Errorf("got outcomes %+v, want only the outcome of #5", got)
		}
		f.wantNoRedelivery()
	})
}

// One read serves all activities of an execution in a batch. The read starts after the batch was received.
func TestR12_readBeforeAStart_isSharedByABatchButNotWithPolls(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", forever, job{}, job{})
		f.jobsOf("b", job{}, job{})
		w := f.worker(nil)
		first := f.handled(ctx, w)
		if n := f.polls(); n != 2 {
			t.Errorf("got %d reads for activities of two executions, want 2", n)
		}
		time.Sleep(1600 * time.Millisecond) // between two polls
		before := f.polls()
		in := f.jobsOf("c", job{})
		f.cancel(in, 3)
		runs := f.ran()
		if failed := <-f.handled(ctx, w); len(failed) > 0 || f.polls() != before+1 || f.ran() != runs {
			t.Errorf("got failed records %v, %d reads, %d runs; want none, 1, 0",
				failed, f.polls()-before, f.ran()-runs)
		}
		f.cancel(provider.Instance{InstanceID: "a"}, 3)
		<-first
	})
}

// The worker waits for a retry that is due soon. A read of the cancel record from before the wait is then outdated.
func TestRetry_cancelledWhileTheWorkerWaits_isNotRun(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{}, job{})
		records := f.receive("sim://default")
		at := time.Now().Add(1200 * time.Millisecond).UTC().Format(time.RFC3339Nano)
		records[0].Body = strings.Replace(records[0].Body, `"attempt":1`, `"attempt":2,"notBefore":"`+at+`"`, 1)
		over := make(chan []string, 1)
		go func() { over <- f.mapped(ctx, f.worker(nil), records) }()
		time.Sleep(time.Second)
		f.cancel(in, 3, 4)
		if failed := <-over; len(failed) > 0 || f.ran() != 1 {
			t.Errorf("got failed records %v and %d runs, want none and only the run without a wait", failed, f.ran())
		}
		f.wantNoRedelivery()
	})
}

// If the worker cannot read the cancel record, it does not run the activity.
func TestActivity_cancelRecordIsUnreadable_recordIsReleased(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{})
		refused := f.failing("Query")
		refused.Store(true)
		if failed := <-f.handled(ctx, f.worker(nil)); len(failed) != 1 || f.ran() != 0 {
			t.Errorf("got %d runs and failed records %v, want no run and 1 failed record", f.ran(), failed)
		}
		refused.Store(false)
		time.Sleep(5 * time.Second)
		if failed := <-f.handled(ctx, f.worker(nil)); len(failed) != 0 || f.ran() != 1 {
			t.Errorf("got %d runs and failed records %v, want 1 run and none failed", f.ran(), failed)
		}
	})
}

func TestActivity_cancelled_endsChildGoroutinesAndRequests(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		server := make(chan net.Conn, 1)
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			server <- far
			return near, nil
		}
		client := &http.Client{Transport: &http.Transport{DialContext: dial}}
		disconnected, child, request := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { // a server that reads the request and never responds
			r := bufio.NewReader(<-server)
			for err := error(nil); err == nil; {
				if _, err = r.ReadByte(); err != nil {
					disconnected <- err
				}
			}
		}()
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "job", func(ctx context.Context, _ job) (string, error) {
			of, stop := context.WithTimeout(ctx, 24*time.Hour)
			defer stop()
			go func() {
				<-of.Done()
				child <- context.Cause(of)
			}()
			req, err := http.NewRequestWithContext(of, http.MethodGet, "http://slow.example/", nil)
			if err != nil {
				return "", err
			}
			_, err = client.Do(req) //nolint:bodyclose // the request has no response
			request <- err
			return "", err
		})
		over := f.handled(ctx, f.workerOf(r, nil))
		time.Sleep(time.Minute)
		f.cancel(in, 3)
		<-over
		if c, ok := errors.AsType[*perdure.CancelledError](<-child); !ok || c.Reason != perdure.ReasonSelectLoser {
			t.Errorf("the child goroutine observed %v, want the cancellation", c)
		}
		if err := <-request; !errors.Is(err, context.Canceled) {
			t.Errorf("the request ended with %v, want context.Canceled", err)
		}
		<-disconnected
	})
}

func TestActivity_completesInTheGracePeriod_isAcknowledged(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{Takes: time.Hour, Longer: 9 * time.Second})
		w := f.worker(nil)
		over := f.handled(ctx, w)
		time.Sleep(time.Minute)
		f.cancel(in, 3)
		if failed := <-over; len(failed) > 0 || w.AbandonedActivities() != 0 {
			t.Errorf("got failed records %v and %d abandoned activities, want none", failed, w.AbandonedActivities())
		}
		if got := f.sent(); len(got) != 1 || !strings.Contains(string(got[0].Result), "done in the end") {
			t.Errorf("got outcomes %+v, want the result of the activity", got)
		}
		f.wantNoRedelivery()
	})
}

func TestActivity_exceedsTheGracePeriod_isAbandoned(t *testing.T) {
	t.Parallel()
	t.Run("returns while its batch runs", testAbandonedActivityReturns)
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", ignoresCancel)
		w := f.worker(nil)
		over := f.handled(ctx, w)
		time.Sleep(time.Minute + 500*time.Millisecond)
		f.cancel(in, 3)
		at := time.Now()
		if failed := <-over; len(failed) > 0 {
			t.Errorf("failed %v", failed)
		}
		if took := time.Since(at); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("the worker waited %v, want 10s from the cancellation", took)
		}
		if w.AbandonedActivities() != 1 {
			t.Errorf("got %d abandoned activities, want 1", w.AbandonedActivities())
		}
		made := len(f.made())
		time.Sleep(3 * time.Hour) // the activity returns, and the worker ignores its result and makes no calls for it
		if ops := f.operations(made); len(ops) > 0 {
			t.Errorf("got calls %v after the grace period, want none", ops)
		}
		f.wantSent(0)
		f.wantNoRedelivery()
	})
}

// testAbandonedActivityReturns checks that the worker drops the result of an abandoned activity, even if the activity
// returns while its batch still runs.
func testAbandonedActivityReturns(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{Takes: 5 * time.Minute, Ignores: true}, job{Takes: 10 * time.Minute})
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(time.Minute)
		f.cancel(in, 3)
		if failed := <-over; len(failed) > 0 {
			t.Errorf("got failed records %v, want none", failed)
		}
		if got := f.sent(); len(got) != 1 || got[0].ActivityID != 4 {
			t.Errorf("got outcomes %+v, want only the outcome of #4", got)
		}
		f.wantNoRedelivery()
	})
}

func TestActivity_ignoresCancellation_isLogged(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", ignoresCancel)
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(time.Minute + 400*time.Millisecond)
		f.cancel(in, 3)
		<-over
		for _, want := range []string{
			"level=WARN", "event=" + logevent.ActivityAbandoned, "activity=job", "instance=a", "activityId=3",
			"reason=select_loser", "ignoredFor=10s", "ranFor=1m10.5s",
		} {
			if !strings.Contains(f.log.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, f.log.String())
			}
		}
	})
}

func TestActivity_customGracePeriod_isObserved(t *testing.T) {
	t.Parallel()
	for grace, leaked := range map[time.Duration]int64{3 * time.Second: 1, 20 * time.Second: 0} {
		t.Run(grace.String(), func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				in := f.jobsOf("a", job{Takes: time.Hour, Longer: 12 * time.Second})
				w := f.worker(func(o *dispatch.WorkerOptions) { o.CancellationGracePeriod = grace })
				over := f.handled(ctx, w)
				time.Sleep(time.Minute)
				f.cancel(in, 3)
				<-over
				if took := time.Since(f.observedAt()); w.AbandonedActivities() != leaked ||
					took != min(grace, 12*time.Second) {
					t.Errorf("got %d abandoned activities after %v, want %d", w.AbandonedActivities(), took, leaked)
				}
				f.wantSent(1 - int(leaked))
			})
		})
	}
}

func TestActivity_withoutGracePeriod_isAbandonedAtOnce(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", ignoresCancel)
		w := f.worker(func(o *dispatch.WorkerOptions) { o.CancellationGracePeriod = -1 })
		over := f.handled(ctx, w)
		time.Sleep(time.Minute + 500*time.Millisecond)
		f.cancel(in, 3)
		at := time.Now()
		<-over
		if took := time.Since(at); took > time.Second || w.AbandonedActivities() != 1 {
			t.Errorf("the worker waited %v and abandoned %d activities, want no wait and 1",
				took, w.AbandonedActivities())
		}
		f.wantSent(0)
		f.wantNoRedelivery()
	})
}

func TestActivities_allOfAnInstanceAreCancelled_shareTheirPolls(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, forever, forever)
		w := f.worker(nil)
		over := f.handled(ctx, w)
		time.Sleep(10*time.Second + 400*time.Millisecond)
		if n := f.polls(); n != 1+41 {
			t.Errorf("got %d reads in ten seconds, want 1 before the start and 4 per second for all three", n)
		}
		f.cancel(in, 3, 4, 5)
		queried := time.Now()
		<-over
		for id := int64(3); id <= 5; id++ {
			f.wantCause(id, perdure.ReasonSelectLoser)
			if at, _ := f.cause(id); at.Sub(queried) > dispatch.DefaultCancelPollInterval {
				t.Errorf("#%d observed the cancellation after %v, want at most the poll interval", id, at.Sub(queried))
			}
		}
		f.wantSent(3)
		f.wantNoCalls()
		f.wantNoRedelivery()
	})
}

func TestR12_batchesOfAProcess_shareTheirPolls(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		jobs := make([]job, 15)
		for i := range jobs {
			jobs[i] = forever
		}
		in := f.jobsOf("a", jobs...)
		w := f.worker(nil)
		first, second := f.handled(ctx, w), f.handled(ctx, w)
		time.Sleep(10*time.Second + 400*time.Millisecond)
		if n := f.polls(); n != 2+41+2 {
			t.Errorf("got %d reads in ten seconds, want 1 for each batch, 4 per second for both, and 1 with each lease",
				n)
		}
		ids := make([]int64, len(jobs))
		for i := range ids {
			ids[i] = int64(3 + i)
		}
		f.cancel(in, ids...)
		<-first
		<-second
		f.wantSent(15)
	})
}

func TestActivities_someHaveEnded_onlyRunningOnesAreCancelled(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{Takes: 2 * time.Second}, forever, job{Takes: time.Minute})
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(10 * time.Second)
		f.wantSent(1)
		f.cancel(in, 3, 4)
		<-over
		f.wantCause(4, perdure.ReasonSelectLoser)
		_, third := f.cause(3)
		_, fifth := f.cause(5)
		if third != nil || fifth != nil {
			t.Errorf("got causes %v, %v of activities that had ended or were not cancelled, want none", third, fifth)
		}
		f.wantSent(3)
		f.wantNoRedelivery()
	})
}

func TestActivities_manyInstancesAreCancelled_observeItWithinASecond(t *testing.T) {
	t.Parallel()
	cancelMany(t, 100, 5, 1)
}

func TestActivities_someOfManyInstancesAreCancelled_othersComplete(t *testing.T) {
	t.Parallel()
	cancelMany(t, 60, 3, 3)
}

// cancelMany runs activities of many instances concurrently, and cancels the activities of every n-th instance.
func cancelMany(t *testing.T, instances, activities, every int) {
	t.Helper()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		w := f.worker(nil)
		jobs := make([]job, activities)
		ids := make([]int64, activities)
		for i := range jobs {
			jobs[i], ids[i] = job{Takes: 5 * time.Minute}, int64(3+i)
		}
		var all []provider.Instance
		for n := range instances {
			all = append(all, f.jobsOf(fmt.Sprint("i", n), jobs...))
		}
		var batches []<-chan []string
		for n := 0; n < instances*activities; n += 10 {
			batches = append(batches, f.handled(ctx, w))
		}
		time.Sleep(time.Minute)
		for n := 0; n < instances; n += every {
			f.cancel(all[n], ids...)
		}
		queried := time.Now()
		for _, over := range batches {
			if failed := <-over; len(failed) > 0 {
				t.Errorf("failed %v", failed)
			}
		}
		cancelled := 0
		for _, o := range f.sent() {
			if o.Error != nil {
				cancelled++
			}
		}
		if want := (instances + every - 1) / every * activities; cancelled != want || w.AbandonedActivities() != 0 {
			t.Errorf("got %d failed and %d abandoned activities, want %d and 0",
				cancelled, w.AbandonedActivities(), want)
		}
		last := time.Duration(0)
		for _, s := range f.observations {
			last = max(last, s.at.Sub(queried))
		}
		if len(f.observations) != cancelled || last > time.Second {
			t.Errorf("got %d cancelled activities, the last after %v; want %d, each within 1s",
				len(f.observations), last, cancelled)
		}
		f.wantNoCalls()
		f.wantSent(instances * activities)
		f.wantNoRedelivery()
	})
}

func TestLease_longActivity_isRenewed(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: 2 * time.Minute}, job{Takes: 2 * time.Minute})
		f.calls = nil
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(2900 * time.Millisecond)
		if early := f.leases(); len(early) > 0 {
			t.Errorf("got leases %v within the first three seconds, want none", early)
		}
		time.Sleep(100 * time.Millisecond)
		for range 116 {
			time.Sleep(time.Second)
			if again := f.receive("sim://default"); len(again) > 0 {
				t.Fatalf("got redelivered records %v during the run, want none", again)
			}
		}
		if failed := <-over; len(failed) > 0 || f.ran() != 2 {
			t.Errorf("got failed records %v and %d runs, want none and 2", failed, f.ran())
		}
		want := strings.Repeat("2 for 30s, ", 5) // at 3, 28, 53, 78 and 103 seconds
		if got := strings.Join(f.leases(), ", ") + ", "; got != want {
			t.Errorf("got leases %s, want %s", got, want)
		}
		f.wantSent(2)
	})
}

// Without an early lease, an activity that kills its process hides its record for the visibility timeout of each
// delivery. From the third delivery on, the worker takes the lease before it runs the code.
func TestLease_thirdDelivery_isTakenBeforeTheCodeRuns(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		for n, want := range []string{"", "", "1 for 30s"} {
			f.jobsOf(fmt.Sprint(n), job{Takes: time.Millisecond})
			records := f.receive("sim://default")
			records[0].ReceiveCount = n + 1
			before := len(f.leases())
			f.worker(nil).HandleRecords(ctx, records)
			if got := strings.Join(f.leases()[before:], ", "); got != want {
				t.Errorf("delivery %d: got leases %q, want %q", n+1, got, want)
			}
		}
		if f.ran() != 3 {
			t.Errorf("got %d runs, want 3", f.ran())
		}
	})
}

// A renewal also reads the cancel record, so the activity observes a cancellation even if polls are rare.
func TestLease_renewal_readsTheCancelRecord(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		began := time.Now()
		in := f.jobsOf("a", forever, job{Takes: 40 * time.Second})
		over := f.handled(ctx, f.worker(func(o *dispatch.WorkerOptions) { o.CancelPollInterval = time.Hour }))
		time.Sleep(10 * time.Second)
		f.cancel(in, 3)
		if failed := <-over; len(failed) > 0 {
			t.Errorf("got failed records %v, want none", failed)
		}
		f.wantCause(3, perdure.ReasonSelectLoser)
		// The worker takes the lease after 3 s, for 30 s, and renews it 5 s before its end.
		if at, _ := f.cause(3); at.Sub(began) != 28*time.Second {
			t.Errorf("the activity observed the cancellation after %v, want 28s", at.Sub(began))
		}
		f.wantSent(2)
	})
}

// Without the lease, the record would stay hidden for 15 minutes, the visibility timeout of the queue.
func TestLease_workerDies_recordIsRedeliveredWhenItExpires(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: time.Hour})
		ctx, crashNow := context.WithCancel(context.WithValue(ctx, crashingProcessKey{}, &crashingProcess{at: 25}))
		defer crashNow()
		f.interfere(crashing)
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(40 * time.Second)
		if again := f.receive("sim://default"); len(again) != 1 {
			t.Error("the record of the dead worker was not redelivered")
		}
		<-over
		f.wantSent(0)
	})
}

func TestLease_activityEnds_isNotRenewed(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: 10 * time.Second}, job{Takes: time.Second}, job{Takes: time.Minute})
		f.calls = nil
		over := f.handled(ctx, f.worker(nil))
		<-over
		synctest.Wait() // a poll may be due at this instant
		made := len(f.made())
		// The worker leases two records at 3 s, and renews one at 28 s and 53 s.
		if got := strings.Join(f.leases(), ", "); got != "2 for 30s, 1 for 30s, 1 for 30s" {
			t.Errorf("got leases %s, want one of two records and two renewals of one", got)
		}
		time.Sleep(5 * time.Minute)
		if ops := f.operations(made); len(ops) > 0 {
			t.Errorf("got calls %v after the activities ended, want none", ops)
		}
		f.wantNoRedelivery()
	})
}

// A short activity costs one read per batch.
func TestActivity_short_costsNoLeaseAndNoPoll(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: 200 * time.Millisecond}, job{})
		made := len(f.made())
		<-f.handled(ctx, f.worker(nil))
		time.Sleep(time.Minute)
		got := strings.Join(f.operations(made), " ")
		if want := "ReceiveMessage Query SendMessageBatch DeleteMessageBatch SendMessageBatch"; got != want {
			t.Errorf("got calls %s, want %s", got, want)
		}
		f.Cloud.ResetCounts()
		if _, _, err := f.Provider.ReadCancels(ctx, "x", 1); err != nil || f.Cloud.Capacity().Read > 1 {
			t.Errorf("the read consumed %+v with error %v, want at most 1 read unit", f.Cloud.Capacity(), err)
		}
	})
}

func TestLease_lockIsLost_activityIsCancelledAndOutcomeDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(f *jobHub, r provider.Record, refused *atomic.Bool)
		at   time.Duration
	}{
		"all renewals fail until the lease expires": {func(_ *jobHub, _ provider.Record, refused *atomic.Bool) {
			time.Sleep(10 * time.Second)
			refused.Store(true)
		}, 33 * time.Second},
		"SQS rejects the first lease": {func(f *jobHub, r provider.Record, _ *atomic.Bool) {
			_ = f.Provider.DeleteRecords(f.t.Context(), "default", r)
		}, 3 * time.Second},
		"SQS rejects a renewal": {func(f *jobHub, r provider.Record, _ *atomic.Bool) {
			time.Sleep(10 * time.Second)
			_, _ = f.Cloud.Queues.DeleteMessage(f.t.Context(), &sqs.DeleteMessageInput{
				QueueUrl: new("sim://default"), ReceiptHandle: &r.ReceiptHandle,
			})
		}, 28 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				f.jobsOf("a", job{Takes: time.Hour, Longer: time.Second})
				refused := f.failing("ChangeMessageVisibilityBatch")
				began := time.Now()
				records := f.receive("sim://default")
				over := make(chan []string, 1)
				go func() { over <- f.worker(nil).HandleRecords(ctx, records) }()
				c.lose(f, records[0], refused)
				made := len(f.made())
				if failed := <-over; len(failed) != 1 {
					t.Errorf("got failed records %v, want 1: the mapping would delete the record", failed)
				}
				f.wantCause(3, perdure.ReasonLockLost)
				if after := f.observedAt().Sub(began).Round(100 * time.Millisecond); after != c.at {
					t.Errorf("the activity observed the lost lock after %v, want %v", after, c.at)
				}
				f.wantSent(0)
				if ops := strings.Join(f.operations(made), " "); strings.Contains(ops, "DeleteMessage") {
					t.Errorf("got calls %s, want no deletion of the record", ops)
				}
			})
		})
	}
}

// A polling process renews its records. If it cannot renew them, it cancels the activity.
func TestPoll_lockIsLost_activityIsCancelled(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: time.Hour})
		f.failing("ChangeMessageVisibilityBatch").Store(true)
		began := time.Now()
		stop := f.polled(ctx, f.Provider, "default", f.worker(nil).HandleRecords, dispatch.PollOptions{Concurrency: 1})
		time.Sleep(15*time.Minute + 2*time.Second)
		f.wantCause(3, perdure.ReasonLockLost)
		if after := f.observedAt().Sub(began); after < 15*time.Minute || after > 15*time.Minute+time.Second {
			t.Errorf("the activity observed the lost lock after %v, want the 15 minutes of the lock", after)
		}
		f.wantSent(0)
		_ = stop()
	})
}

// Near the deadline of an invocation, the worker cancels its activities and releases their records. Another worker
// runs them again.
func TestActivity_invocationDeadline_recordIsReleased(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", forever, job{Takes: time.Hour, Longer: 5 * time.Second}, ignoresCancel,
			job{Takes: 80 * time.Second})
		began := time.Now()
		ctx, stop := context.WithTimeout(ctx, 100*time.Second)
		defer stop()
		w := f.worker(nil)
		failed := <-f.handled(ctx, w)
		if took := time.Since(began); len(failed) != 3 || took != 98*time.Second {
			t.Errorf("got failed records %v after %v, want three after 98s", failed, took)
		}
		if after := f.observedAt().Sub(began); after != 88*time.Second {
			t.Errorf("got the cancellation after %v, want 88s: the grace period and 2s for the outcomes remain", after)
		}
		f.wantCause(3, perdure.ReasonInvocationDeadline)
		f.wantCause(4, perdure.ReasonInvocationDeadline)
		if got := f.sent(); len(got) != 1 || got[0].ActivityID != 6 || w.AbandonedActivities() != 1 {
			t.Errorf("got outcomes %+v and %d abandoned activities, want only #6 and 1", got, w.AbandonedActivities())
		}
		time.Sleep(5 * time.Second)
		if again := f.receive("sim://default"); len(again) != 3 {
			t.Errorf("got %d records redelivered within seconds, want 3", len(again))
		}
	})
}

// The worker does not start an activity shortly before the deadline of its invocation.
func TestActivity_invocationIsNearItsDeadline_doesNotStart(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{})
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsCancels(c) {
				time.Sleep(90 * time.Second)
			}
			return next()
		})
		ctx, stop := context.WithTimeout(ctx, 100*time.Second)
		defer stop()
		if failed := <-f.handled(ctx, f.worker(nil)); len(failed) != 1 || f.ran() > 0 {
			t.Errorf("got failed records %v and %d runs, want 1 and 0", failed, f.ran())
		}
	})
}

func TestPoll_shutdown_reportsAbandonedActivities(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", forever, ignoresCancel)
		w := f.worker(nil)
		stop := f.polled(ctx, f.Provider, "default", w.HandleRecords,
			dispatch.PollOptions{GracePeriod: 5 * time.Second})
		time.Sleep(time.Minute)
		at := time.Now()
		if err := stop(); err == nil || time.Since(at) != 15*time.Second {
			t.Errorf("stopped after %v with error %v, want 15s and an error", time.Since(at), err)
		}
		f.wantCause(3, perdure.ReasonShutdown)
		if w.AbandonedActivities() != 1 || !strings.Contains(f.log.String(), "reason=shutdown") ||
			!strings.Contains(f.log.String(), "activityId=4") {
			t.Errorf("got %d abandoned activities, want 1; log:\n%s", w.AbandonedActivities(), f.log.String())
		}
		f.wantSent(0)
		if again := f.receive("sim://default"); len(again) != 2 {
			t.Errorf("got %d redelivered records, want both", len(again))
		}
	})
}

// SQS rejects the outcome of a short activity. The worker releases its record within seconds, even if the other
// activities of the batch run longer.
func TestActivity_outcomeIsRejected_recordIsReleasedAtOnce(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: time.Second}, job{Takes: 10 * time.Minute})
		refused := f.failing("SendMessageBatch")
		refused.Store(true)
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(5 * time.Second)
		refused.Store(false)
		if again := f.receive("sim://default"); len(again) != 1 {
			t.Errorf("got %d records redelivered within 5s, want 1", len(again))
		}
		if failed := <-over; len(failed) != 1 {
			t.Errorf("got failed records %v, want 1", failed)
		}
		f.wantSent(2) // one of them is the rejected call
	})
}

// A cancelled activity is not retried, even if its retry policy allows an attempt.
func TestRetry_cancelledActivityFails_isNotRetried(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{Takes: time.Hour, Fails: true})
		records := f.receive("sim://default")
		records[0].Body = strings.Replace(records[0].Body, `"attempt":1`,
			`"attempt":1,"retry":{"maxAttempts":5,"initialIntervalMs":1000}`, 1)
		over := make(chan []string, 1)
		go func() { over <- f.worker(nil).HandleRecords(ctx, records) }()
		time.Sleep(5 * time.Second)
		f.cancel(in, 3)
		<-over
		f.wantSent(1)
		f.wantNoRedelivery()
		if f.ran() != 1 {
			t.Errorf("got %d runs, want 1", f.ran())
		}
	})
}
