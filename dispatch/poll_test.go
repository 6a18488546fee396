package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// polled starts Poll. stop ends Poll and waits for it.
func (h *hub) polled(
	ctx context.Context, p provider.Poller, queue string,
	handle func(context.Context, []provider.Record) []string, o dispatch.PollOptions,
) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	if o.Logger == nil {
		o.Logger = h.logger()
	}
	ended := make(chan error, 1)
	go func() { ended <- dispatch.Poll(ctx, p, queue, handle, o) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// logger returns the logger of functions that a test creates. It discards the log unless the test is verbose.
func (h *hub) logger() *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(h.t.Output(), nil))
	}
	return slog.New(slog.DiscardHandler)
}

// activities returns a worker for the activities of r.
func (h *hub) activities(r *perdure.Registry) *dispatch.Worker {
	return must(dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{Logger: h.logger()}))
}

// pollAll polls all queues of the hub like one process.
func (h *hub) pollAll(ctx context.Context, r *perdure.Registry) (stop func()) {
	o := must(dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{Logger: h.logger()}))
	stops := []func() error{
		h.polled(ctx, h.Provider, provider.QueueInbox, o.HandleRecords, dispatch.PollOptions{}),
		h.polled(ctx, h.Provider, "default", h.activities(r).HandleRecords, dispatch.PollOptions{}),
		h.polled(ctx, h.Provider, provider.QueueTimers, h.Renewer.HandleRecords, dispatch.PollOptions{}),
	}
	return func() {
		for _, s := range stops {
			if err := s(); err != nil {
				h.t.Error(err)
			}
		}
		o.Close()
	}
}

// startAs starts an instance with an ID. Its wake is in the inbox.
func (h *hub) startAs(id, name string, input any) provider.Instance {
	h.t.Helper()
	start := provider.Start{InstanceID: id, Name: name, Input: encoded(h.t, input), StartID: "start of " + id}
	in, err := h.Provider.StartOrchestration(h.t.Context(), start)
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// wantOutput fails the test unless the instance has ended with the output want. An empty want accepts any output.
func (h *hub) wantOutput(in provider.Instance, want string) {
	h.t.Helper()
	end, err := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID)
	if err != nil || want != "" && string(end.Output) != want {
		h.t.Errorf("instance %s: got %v, %v, want the result %s", in.InstanceID, end.String(), err, want)
	}
	h.events(in)
}

// wantEmpty fails the test unless all queues are empty.
func (h *hub) wantEmpty() {
	h.t.Helper()
	where := h.Provider.Config()
	for _, url := range []string{where.InboxURL, where.TimersURL, where.WorkQueues["default"]} {
		input := &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"}}
		out, err := h.Cloud.Queues.GetQueueAttributes(h.t.Context(), input)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, name := range []string{
			"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
			"ApproximateNumberOfMessagesDelayed",
		} {
			if n := out.Attributes[name]; n != "0" {
				h.t.Errorf("%s: got %s %s, want 0", url, name, n)
			}
		}
	}
}

// No Lambda function consumes a queue. Polling processes run chains, fan-outs, retries, and short and long timers.
func TestPoll_hubWithoutFunctions_isServed(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Timers: dynamo.TimersRequeue}, func(ctx context.Context, h *hub) {
		stop := h.pollAll(ctx, registry())
		wants := map[string]provider.Instance{}
		for n := range 12 {
			wants[fmt.Sprint("10/", n)] = h.startAs(fmt.Sprint("chain", n), "chain", 10)
		}
		fan := h.startAs("fan", "fan", 57)
		retries := h.startAs("retries", "retries", 3)
		began := time.Now()
		timer := h.startAs("timer", "timer", 40*time.Minute)
		time.Sleep(time.Hour)
		stop()
		for want, in := range wants {
			h.wantOutput(in, strings.Split(want, "/")[0])
		}
		h.wantOutput(fan, fmt.Sprint(57*58/2))
		h.wantOutput(retries, "3")
		h.wantOutput(timer, "")
		if end, err := h.Provider.ReadTerminalEvent(ctx, timer.ExecutionID); err == nil {
			if late := end.Time.Sub(began.Add(40 * time.Minute)); late < 0 || late > 2*time.Second {
				t.Errorf("the timer fired %v after its due time, want 0 to 2s", late)
			}
		}
		h.wantEmpty()
	})
}

// crashingProcess is a polling process that crashes at its n-th call to AWS.
type crashingProcess struct {
	at    int64
	after bool
	calls atomic.Int64
	dead  atomic.Bool
}

type crashingProcessKey struct{}

// crashing intercepts the calls of a crashingProcess.
func crashing(ctx context.Context, _ simaws.Call, next func() error) error {
	m, ok := ctx.Value(crashingProcessKey{}).(*crashingProcess)
	if !ok {
		return next()
	}
	if m.dead.Load() {
		return simhub.ErrCrashed
	}
	if m.calls.Add(1) < m.at {
		return next()
	}
	m.dead.Store(true)
	if m.after {
		_ = next()
	}
	return simhub.ErrCrashed
}

// A process crashes before or after each of its calls. Another process completes all of its work.
func TestPoll_processDiesAtAnyCall_losesNothing(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	died := 0
	for _, after := range []bool{false, true} {
		for at, dies := int64(1), true; dies; at++ {
			inBubble(t, simhub.Options{Intercept: crashing}, func(ctx context.Context, h *hub) {
				m := &crashingProcess{at: at, after: after}
				first := h.pollAll(context.WithValue(ctx, crashingProcessKey{}, m), registry())
				chain, fan := h.startAs("chain", "chain", 3), h.startAs("fan", "fan", 5)
				timer := h.startAs("timer", "timer", time.Second)
				time.Sleep(5 * time.Second)
				dies = m.dead.Load()
				first()
				second := h.pollAll(ctx, registry())
				time.Sleep(time.Hour)
				second()
				h.wantOutput(chain, "3")
				h.wantOutput(fan, "15")
				h.wantOutput(timer, "")
				h.wantEmpty()
			})
			if dies {
				died++
			}
		}
	}
	if died < 50 {
		t.Errorf("got %d crashes of the process, want at least 50", died)
	}
}

// withoutRenewals is a provider that never renews a lock.
type withoutRenewals struct{ *dynamo.Provider }

func (withoutRenewals) RenewRecords(context.Context, string, time.Duration, ...provider.Record) (
	[]provider.Record, error,
) {
	return nil, nil
}

// slowAtFirst registers an activity whose first run takes d. It returns the number of its run.
func slowAtFirst(d time.Duration) (*perdure.Registry, *atomic.Int64) {
	r, runs := registry(), &atomic.Int64{}
	perdure.AddActivity(r, "dawdle", func(_ context.Context, _ int) (int, error) {
		run := int(runs.Add(1))
		if run == 1 {
			time.Sleep(d)
		}
		return run, nil
	})
	perdure.AddOrchestration(r, "dawdle", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "dawdle", n).Await(ctx)
	})
	return r, runs
}

// outcomes returns the number of sent messages with activity outcomes.
func (h *hub) outcomes() (n int) {
	for _, c := range h.made() {
		if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok {
			for i := range in.Entries {
				if strings.Contains(*in.Entries[i].MessageBody, string(provider.MessageActivityOutcomes)) {
					n++
				}
			}
		}
	}
	return n
}

// An activity of an hour runs on a queue with a visibility timeout of 30 s. With renewals, the activity runs once.
// Without renewals, it runs again when the lock expires, and the outcome of the first run is not sent.
func TestPoll_longActivityIsRenewed_runsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		renews bool
		runs   int64
		output string
	}{"renewed": {true, 1, "1"}, "not renewed": {false, 2, "2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, runs := slowAtFirst(time.Hour)
			inBubble(t, simhub.Options{Registry: r, WorkVisibility: 30 * time.Second},
				func(ctx context.Context, h *hub) {
					in := h.startAs("a", "dawdle", 0)
					h.turn(0)
					p := provider.Poller(h.Provider)
					if !c.renews {
						p = withoutRenewals{h.Provider}
					}
					stop := h.polled(ctx, p, "default", h.activities(r).HandleRecords, dispatch.PollOptions{})
					time.Sleep(2 * time.Hour)
					if err := stop(); err != nil {
						t.Error(err)
					}
					h.turn(0)
					if runs.Load() != c.runs || h.outcomes() != 1 {
						t.Errorf("got %d runs and %d outcomes, want %d and 1", runs.Load(), h.outcomes(), c.runs)
					}
					h.wantOutput(in, c.output)
					h.wantEmpty()
				})
		})
	}
}

// A worker that has lost the lock does not schedule a retry.
func TestPoll_lockExpires_retryIsNotSent(t *testing.T) {
	t.Parallel()
	r, runs := registry(), &atomic.Int64{}
	perdure.AddActivity(r, "dawdle", func(_ context.Context, _ int) (int, error) {
		if run := runs.Add(1); run == 1 {
			time.Sleep(time.Hour)
			return 0, errors.New("too late to matter")
		}
		return 7, nil
	})
	perdure.AddOrchestration(r, "dawdle", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "dawdle", n, perdure.WithRetry(perdure.RetryPolicy{})).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, WorkVisibility: 30 * time.Second}, func(ctx context.Context, h *hub) {
		in := h.startAs("a", "dawdle", 0)
		h.turn(0)
		stop := h.polled(ctx, withoutRenewals{h.Provider}, "default", h.activities(r).HandleRecords,
			dispatch.PollOptions{})
		time.Sleep(2 * time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		h.turn(0)
		if runs.Load() != 2 {
			t.Errorf("got %d runs, want 2", runs.Load())
		}
		h.wantOutput(in, "7")
		h.wantEmpty()
	})
}

// A turn whose lock has expired is not committed. It writes and sends nothing.
func TestPoll_lockExpires_turnIsNotCommitted(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{InboxVisibility: 10 * time.Second}, func(ctx context.Context, h *hub) {
		in := h.startAs("a", "chain", 1)
		h.calls = nil
		slept := false
		handle := func(ctx context.Context, rs []provider.Record) []string {
			if slept {
				return h.Orchestrators[0].HandleRecords(ctx, rs)
			}
			slept = true
			time.Sleep(time.Minute)
			failed := h.Orchestrators[0].HandleRecords(ctx, rs)
			if len(failed) != 1 {
				t.Errorf("got failed records %v, want the record", failed)
			}
			for _, op := range h.operations(0) {
				switch op {
				case "PutItem", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch":
					t.Errorf("got a call of %s, want none", op)
				}
			}
			return failed
		}
		stop := h.polled(ctx, withoutRenewals{h.Provider}, provider.QueueInbox, handle,
			dispatch.PollOptions{Concurrency: 1})
		time.Sleep(90 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(h.workItems()) != 1 {
			t.Error("the next delivery did not run the turn")
		}
		h.events(in)
	})
}

// A process renews only the unfinished records of a batch.
func TestPoll_batchIsPartlyFinished_renewsTheUnfinished(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "nap", func(_ context.Context, d time.Duration) (int, error) {
		time.Sleep(d)
		return 0, nil
	})
	perdure.AddOrchestration(r, "naps", func(ctx *perdure.OrchestrationContext, ds []time.Duration) (int, error) {
		var fs []perdure.Awaitable
		for _, d := range ds {
			fs = append(fs, perdure.CallActivityByName[int](ctx, "nap", d))
		}
		return len(ds), perdure.WhenAll(ctx, fs...)
	})
	inBubble(t, simhub.Options{Registry: r, WorkVisibility: 30 * time.Second}, func(ctx context.Context, h *hub) {
		var log strings.Builder
		in := h.startAs("a", "naps", []time.Duration{time.Second, time.Second, 45 * time.Second})
		h.turn(0)
		h.calls = nil
		o := dispatch.PollOptions{Concurrency: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		stop := h.polled(ctx, h.Provider, "default", h.activities(r).HandleRecords, o)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		renewals := 0
		for _, c := range h.made() {
			if renewal, ok := c.Input.(*sqs.ChangeMessageVisibilityBatchInput); ok {
				renewals++
				if len(renewal.Entries) != 1 || renewal.Entries[0].VisibilityTimeout != 30 {
					t.Errorf("renewed %d records for %d s, want 1 for 30 s",
						len(renewal.Entries), renewal.Entries[0].VisibilityTimeout)
				}
			}
		}
		if renewals != 4 { // at 10, 20, 30 and 40 s
			t.Errorf("got %d renewals, want 4", renewals)
		}
		if log.Len() > 0 {
			t.Errorf("got log %s, want none", log.String())
		}
		h.turn(0)
		h.wantOutput(in, "3")
		h.wantEmpty()
	})
}

// Only the records that the handler reports as failed are redelivered.
func TestPoll_batchFailsPartly_redeliversTheFailed(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{WorkVisibility: 30 * time.Second}, func(ctx context.Context, h *hub) {
		h.startAs("a", "fan", 3)
		h.turn(0)
		got := map[string]int{}
		handle := func(_ context.Context, rs []provider.Record) (failed []string) {
			for _, r := range rs {
				if got[r.ID] += r.ReceiveCount; len(got) == 2 && r.ReceiveCount == 1 {
					failed = append(failed, r.ID)
				}
			}
			return failed
		}
		stop := h.polled(ctx, h.Provider, "default", handle, dispatch.PollOptions{Concurrency: 1})
		time.Sleep(5 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		counts := slices.Sorted(maps.Values(got))
		if !slices.Equal(counts, []int{1, 1, 1 + 2}) {
			t.Errorf("got deliveries %v of the three records, want [1 1 3]", counts)
		}
	})
}

// A failed renewal is retried before the next renewal is due.
func TestPoll_renewalFails_isRetriedInTime(t *testing.T) {
	t.Parallel()
	r, runs := slowAtFirst(5 * time.Minute)
	inBubble(t, simhub.Options{Registry: r, WorkVisibility: 30 * time.Second}, func(ctx context.Context, h *hub) {
		in := h.startAs("a", "dawdle", 0)
		h.turn(0)
		var renewals atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "ChangeMessageVisibilityBatch" && renewals.Add(1)%3 != 0 {
				return errors.New("not now")
			}
			return next()
		})
		stop := h.polled(ctx, h.Provider, "default", h.activities(r).HandleRecords, dispatch.PollOptions{})
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		h.turn(0)
		if runs.Load() != 1 {
			t.Errorf("got %d runs, want 1", runs.Load())
		}
		h.wantOutput(in, "1")
	})
}

// Failed receives are retried after 1, 2, 4, … and at most 30 seconds. A successful receive resets the delay.
func TestPoll_receiveFails_isRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		var at []time.Duration
		began := time.Now()
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation != "ReceiveMessage" {
				return next()
			}
			at = append(at, time.Since(began).Round(time.Second))
			if len(at) == 8 {
				return next() // long poll of 20 s without a message
			}
			return errors.New("refused")
		})
		stop := h.polled(ctx, h.Provider, "default", h.activities(registry()).HandleRecords,
			dispatch.PollOptions{Concurrency: 1})
		time.Sleep(2*time.Minute + 500*time.Millisecond)
		if err := stop(); err != nil {
			t.Error(err)
		}
		s := time.Second
		want := []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s, 61 * s, 91 * s, 111 * s, 112 * s, 114 * s, 118 * s}
		if !slices.Equal(at, want) {
			t.Errorf("received at %v, want %v", at, want)
		}
	})
}

// Once its context has ended, Poll receives no more records and waits for the running handlers.
func TestPoll_stops_waitsForHandlers(t *testing.T) {
	t.Parallel()
	r, runs := slowAtFirst(20 * time.Second)
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.startAs("a", "dawdle", 0)
		h.turn(0)
		stop := h.polled(ctx, h.Provider, "default", h.activities(r).HandleRecords, dispatch.PollOptions{})
		time.Sleep(time.Second)
		ended := time.Now()
		before := len(h.made())
		if err := stop(); err != nil || time.Since(ended).Round(time.Second) != 19*time.Second {
			t.Errorf("Poll returned after %v with %v, want 19s and no error", time.Since(ended), err)
		}
		if slices.Contains(h.operations(before), "ReceiveMessage") {
			t.Error("Poll received records after its context had ended")
		}
		h.turn(0)
		h.wantOutput(in, "1")
		if runs.Load() != 1 {
			t.Errorf("got %d runs, want 1", runs.Load())
		}
	})
}

// Poll releases records whose handler exceeds the grace period. Then it cancels the context of the handler, and the
// worker does not send the resulting error.
func TestPoll_handlerExceedsTheGracePeriod_recordIsReleased(t *testing.T) {
	t.Parallel()
	r, runs := registry(), &atomic.Int64{}
	causes := make(chan error, 1)
	perdure.AddActivity(r, "ignoresCancel", func(ctx context.Context, _ int) (int, error) {
		if runs.Add(1) == 1 {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return 0, ctx.Err()
		}
		return 2, nil
	})
	perdure.AddOrchestration(r, "ignoresCancel", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "ignoresCancel", n).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.startAs("a", "ignoresCancel", 0)
		h.turn(0)
		o := dispatch.PollOptions{GracePeriod: 5 * time.Second}
		stop := h.polled(ctx, h.Provider, "default", h.activities(r).HandleRecords, o)
		time.Sleep(time.Minute)
		ended := time.Now()
		err := stop()
		if took := time.Since(ended); err == nil || !strings.Contains(err.Error(), "1 records") ||
			took != 5*time.Second {
			t.Errorf("Poll returned after %v with %v, want 5s and an error about 1 record", took, err)
		}
		if cause := <-causes; cause == nil || !strings.Contains(cause.Error(), "stopping") {
			t.Errorf("the context of the activity ended with %v, want stopping", cause)
		}
		synctest.Wait()
		if n := h.outcomes(); n > 0 {
			t.Errorf("got %d outcomes, want none", n)
		}
		if failed := h.activities(r).HandleRecords(ctx, h.receive("sim://default")); len(failed) > 0 ||
			runs.Load() != 2 {
			t.Errorf("got failed records %v and %d runs after the release, want none and 2", failed, runs.Load())
		}
		h.turn(0)
		h.wantOutput(in, "2")
	})
}

// In a polling process, as in a function, the renewal of a lock also reads the cancel record. Activities therefore
// observe a cancellation even without polls.
func TestPoll_renewal_readsTheCancelRecord(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, forever)
		w := f.worker(func(o *dispatch.WorkerOptions) { o.CancelPollInterval = 24 * time.Hour })
		o := dispatch.PollOptions{LockTimeout: 30 * time.Second, Renew: w.RenewRecords}
		stop := f.polled(ctx, f.Provider, "default", w.HandleRecords, o)
		time.Sleep(time.Hour)
		f.cancel(in, 3)
		at := time.Now()
		time.Sleep(10*time.Second + time.Millisecond)
		f.wantCause(3, perdure.ReasonSelectLoser)
		if took := f.observedAt().Sub(at); took > 10*time.Second {
			t.Errorf("the activity observed the cancellation after %v, want at most the renewal interval of 10s", took)
		}
		if _, cause := f.cause(4); cause != nil || f.ran() != 2 {
			t.Errorf("got %d runs and cause %v of the other activity, want 2 and none", f.ran(), cause)
		}
		f.cancel(in, 4)
		time.Sleep(10*time.Second + time.Millisecond)
		f.wantCause(4, perdure.ReasonSelectLoser)
		f.wantSent(2)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A renewal that could not read the cancel record does not replace a poll. The worker polls at once.
func TestPoll_renewalCannotReadTheCancelRecord_pollFollows(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		w := f.worker(func(o *dispatch.WorkerOptions) { o.CancelPollInterval = 24 * time.Hour })
		var once atomic.Int64
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsCancels(c) && once.Add(1) == 2 { // the read of the first renewal
				return errors.New("refused")
			}
			return next()
		})
		o := dispatch.PollOptions{LockTimeout: 30 * time.Second, Renew: w.RenewRecords}
		stop := f.polled(ctx, f.Provider, "default", w.HandleRecords, o)
		time.Sleep(5 * time.Second)
		f.cancel(in, 3)
		time.Sleep(6 * time.Second) // before the next renewal, which is due after 13 s
		f.wantCause(3, perdure.ReasonSelectLoser)
		f.wantSent(1)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
