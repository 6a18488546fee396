package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/e2e/app"
)

// A running activity observes its cancel within the poll interval of 250 ms, plus a margin. The time starts at the turn
// that decides the cancel and ends when ctx.Done is closed in the activity.
func TestCancel_runningActivities_observeItWithinThePollInterval(t *testing.T) {
	shortrun.Skip(t)
	// allows for a busy machine; with polls every second, a cancel could take 1,000 ms
	const limit = 700 * time.Millisecond
	p50, p99, n := latencies(t)
	t.Logf("%d activities saw their cancellation %v after the turn that decided it at the median, %v at the 99th "+
		"percentile", n, p50, p99)
	if p99 > limit {
		t.Errorf("p99 of observed cancellations: got %v, want %v", p99, limit)
	}
}

// BenchmarkCancel measures the time until running activities observe a cancel, as in
// TestCancel_runningActivities_observeItWithinThePollInterval.
func BenchmarkCancel(b *testing.B) {
	for b.Loop() {
		p50, p99, n := latencies(b)
		b.ReportMetric(p50.Seconds()*1000, "p50-ms")
		b.ReportMetric(p99.Seconds()*1000, "p99-ms")
		b.ReportMetric(float64(n), "activities")
	}
}

// latencies cancels instances until 200 activities have reported when they observed it.
func latencies(tb testing.TB) (p50, p99 time.Duration, n int) {
	tb.Helper()
	const rounds, instances, each, enough = 12, 5, 10, 200
	c := longTimeoutHub(tb)
	var took []time.Duration
	for round := 0; round < rounds && len(took) < enough; round++ { // the local cloud runs about 40 at once
		var ids []string
		for n := range instances {
			ids = append(ids, id(tb, round*instances+n))
		}
		took = append(took, measureCancels(tb, c, ids, each)...)
		explained(tb, c, ids[0], each)
	}
	slices.Sort(took)
	if len(took) < enough {
		tb.Fatalf("got %d activities that reported their cancellation, want %d", len(took), enough)
	}
	return took[len(took)/2], took[len(took)*99/100], len(took)
}

// longTimeoutHub starts a separate hub with a longer timeout for activities, and returns its client.
func longTimeoutHub(tb testing.TB) *client.Client {
	tb.Helper()
	cloud, err := up(tb.Context(), "patient", "--param", "WorkTimeout=60")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cloud.Stop(); err != nil {
			tb.Error(err)
		}
	})
	for name, value := range cloud.Env {
		tb.Setenv(name, value)
	}
	tb.Setenv(client.EndpointVariable, cloud.API)
	p, err := dynamo.Open(tb.Context(), "patient")
	if err != nil {
		tb.Fatal(err)
	}
	return client.New(p)
}

// aWhile is the time for activities to start. Activities that have not started by then are cancelled before they start.
const aWhile = 3 * time.Second

// measureCancels starts instances with activities, and cancels the instances while the activities run. It returns the
// time until each activity has observed its cancel.
func measureCancels(tb testing.TB, c *client.Client, ids []string, each int) (took []time.Duration) {
	tb.Helper()
	folder := tb.TempDir()
	for _, instance := range ids {
		if _, err := c.Start(tb.Context(), "all-stand-by", app.Watches{Count: each, Folder: folder},
			client.WithInstanceID(instance)); err != nil {
			tb.Fatal(err)
		}
	}
	started := time.Now()
	for running := 0; running < len(ids)*each && time.Since(started) < aWhile; time.Sleep(50 * time.Millisecond) {
		files, err := os.ReadDir(folder)
		if err != nil {
			tb.Fatal(err)
		}
		running = len(files)
	}
	for _, instance := range ids {
		if err := c.Cancel(tb.Context(), instance, "that will do"); err != nil {
			tb.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer stop()
	for _, instance := range ids {
		s, err := c.Wait(ctx, instance)
		if err != nil || s.Status != client.StatusCancelled {
			tb.Fatalf("%s: got status %s, failure %+v, error %v", instance, s.Status, s.Failure, err)
		}
		took = append(took, reached(tb, c, instance)...)
	}
	return took
}

// explained waits until the outcome of each cancelled activity is known, and checks it.
func explained(tb testing.TB, c *client.Client, instance string, each int) {
	tb.Helper()
	known := func(x client.Cancellation) bool { return x.Target != client.TargetActivity || x.End != "" }
	var found []client.Cancellation
	for range time.Tick(100 * time.Millisecond) {
		var err error
		if found, err = client.Collect(c.Cancellations(tb.Context(), instance, "")); err != nil {
			tb.Fatal(err)
		}
		if !slices.ContainsFunc(found, func(x client.Cancellation) bool { return !known(x) }) {
			break
		}
	}
	if len(found) != 1+each || found[0].Target != client.TargetInstance || found[0].End != client.OutcomeCancelled {
		tb.Fatalf("got %d cancellations, the first %+v", len(found), found)
	}
	for _, x := range found[1:] {
		if x.Reason != "requested" || x.RequestedBy != history.RequestedByEngine || x.SeenAt.IsZero() ||
			x.End != client.OutcomeCompleted && x.End != client.OutcomeNeverStarted {
			tb.Errorf("got %+v", x)
		}
	}
	out, exit := perdure(tb, "why", instance)
	if exit != 0 || strings.Count(out, "\n") != 5+1+each || !strings.Contains(out, "\nstarted by ") ||
		!strings.Contains(out, `requested "that will do"`) {
		tb.Errorf("perdure why: got exit code %d\n%s", exit, out)
	}
}

// reached returns the times between the cancel of an instance and its observation by each activity.
func reached(tb testing.TB, c *client.Client, instance string) (took []time.Duration) {
	tb.Helper()
	var decided time.Time
	for e, err := range c.History(tb.Context(), instance) {
		if err != nil {
			tb.Fatal(err)
		}
		switch e.Kind {
		case history.CancelRequested:
			decided = e.Time
		case history.ActivityCompleted:
			var r app.ObservedCancel
			if err := json.Unmarshal(e.Result, &r); err != nil || r.Reason != "requested" {
				tb.Errorf("got result %s, error %v", e.Result, err)
			}
			took = append(took, r.At.Sub(decided))
		}
	}
	return took
}

// An activity is cancelled through API Gateway while it runs, or while it waits for its next attempt. The orchestration
// continues, and a second cancel of the activity is rejected.
func TestCancelActivity_overHTTP_orchestrationContinues(t *testing.T) {
	for name, n := range map[string]int{"running": 0, "pending": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instance := "cancel-by-api-" + name
			if _, err := hub.client.Start(t.Context(), "one-of-two", n, client.WithInstanceID(instance)); err != nil {
				t.Fatal(err)
			}
			await(t, instance, history.ActivityScheduled)
			path := "/instances/" + instance + "/activities/3/cancel"
			if status, _, notified := request(t, "POST", path,
				`{"message":"that will do"}`); status != http.StatusAccepted {
				t.Fatalf("got HTTP %d %v", status, notified)
			}
			s, err := hub.client.Wait(t.Context(), instance)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := client.Result[string](s); err != nil || got != "requested: that will do" {
				t.Errorf("got %q, error %v", got, err)
			}
			if status, _, problem := request(t, "POST", path, ""); status != http.StatusConflict ||
				problem["code"] != "not_cancellable" {
				t.Errorf("repeated request: got HTTP %d %v", status, problem)
			}
			if status, _, problem := request(t, "POST", strings.Replace(path, "/3/", "/4711/", 1),
				""); status != http.StatusNotFound || problem["code"] != "activity_not_found" {
				t.Errorf("other activity: got HTTP %d %v", status, problem)
			}
		})
	}
}

// An activity is cancelled while its work item is queued and no worker runs. The orchestration continues at once. A
// worker that starts later does not run the activity, and deletes the work item.
func TestCancelActivity_queuedActivity_neverStarts(t *testing.T) {
	shortrun.Skip(t)
	pollOnlyHub(t, "queued")
	p, err := dynamo.Open(t.Context(), "queued")
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(p)
	serve(t, "queued", "orchestrator", "renewer")
	instance := id(t, 1)
	if _, err := c.Start(t.Context(), "one-of-two", 0, client.WithInstanceID(instance)); err != nil {
		t.Fatal(err)
	}
	url := p.Config().WorkQueues["default"]
	for range time.Tick(20 * time.Millisecond) {
		if left(t, url) == 1 {
			break
		}
	}
	if err := c.CancelActivity(t.Context(), instance, 3, "that will do"); err != nil {
		t.Fatal(err)
	}
	s, err := c.Wait(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](s); err != nil || got != "requested: that will do" {
		t.Errorf("got %q, error %v", got, err)
	}
	if n := left(t, url); n != 1 {
		t.Errorf("got %d work items in the queue, want the cancelled one", n)
	}
	serve(t, "queued", "worker")
	x := outcomeOf(t, c, instance)
	if x.End != client.OutcomeNeverStarted || x.Reason != "requested" || x.SeenAt.IsZero() {
		t.Errorf("activity: got %+v", x)
	}
	for range 100 {
		if left(t, url) == 0 {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if n := left(t, url); n != 0 {
		t.Errorf("got %d work items in the queue, want none", n)
	}
	valid(t, c, instance)
}

// A running activity observes that its orchestration has completed.
func TestCompletion_runningActivity_isCancelled(t *testing.T) {
	instance, folder := id(t, 1), t.TempDir()
	if _, err := hub.client.Start(t.Context(), "leaves-work", folder, client.WithInstanceID(instance)); err != nil {
		t.Fatal(err)
	}
	for range time.Tick(20 * time.Millisecond) {
		if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
			break
		}
	}
	if err := hub.client.RaiseEvent(t.Context(), instance, "go", "done"); err != nil {
		t.Fatal(err)
	}
	s, err := hub.client.Wait(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](s); err != nil || got != "done" {
		t.Errorf("got %q, error %v", got, err)
	}
	x := outcomeOf(t, hub.client, instance)
	if took := x.SeenAt.Sub(x.DecidedAt); x.Reason != "orchestration_terminal_completed" ||
		x.End != client.OutcomeCompleted || took <= 0 || took > 3*time.Second {
		t.Errorf("activity after %v: got %+v", took, x)
	}
	valid(t, hub.client, instance)
}

// outcomeOf waits for the outcome of the only cancelled activity of an instance, and returns it.
func outcomeOf(t *testing.T, c *client.Client, instance string) client.Cancellation {
	t.Helper()
	for range 150 {
		found, err := client.Collect(c.Cancellations(t.Context(), instance, ""))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && found[0].End != "" {
			return found[0]
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatalf("got no outcome of the activity of %s", instance)
	return client.Cancellation{}
}

// serve runs functions of the application as processes for a hub until the test ends.
func serve(t *testing.T, hubName string, functions ...string) {
	t.Helper()
	args := []string{"worker", "--hub", hubName}
	for _, f := range functions {
		args = append(args, "./app/functions/"+f)
	}
	processes := exec.Command(hub.perdure, args...)
	printed := &strings.Builder{}
	processes.Stdout, processes.Stderr = printed, printed
	if err := processes.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := processes.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := processes.Wait(); err != nil || t.Failed() {
			t.Errorf("%v: got error %v, output\n%s", functions, err, printed)
		}
	})
}

// left returns the number of messages in a queue.
func left(t *testing.T, url string) (n int) {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}
	out, err := sqs.NewFromConfig(cfg).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: names,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out.Attributes {
		some, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		n += some
	}
	return n
}
