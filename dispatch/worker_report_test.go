package dispatch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// eventWorkerMissing is the event of the sweeper for a queue without a worker.
const eventWorkerMissing = logevent.WorkerMissing

// reports counts the reports of workers.
func (f *jobHub) reports() (n int) {
	for _, c := range f.made() {
		if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && text(in.Key, "sk") == "w#default" {
			n++
		}
	}
	return n
}

// The functions of a queue crash at init, so no worker receives its work items. The sweeper logs their number as a
// metric, and pending items report NoWorker, until a worker runs.
func TestWorkerMissing_functionsDieAtInit_isReported(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		k := must(dispatch.NewRenewer(f.Provider, &dispatch.RenewerOptions{
			HubName: "shop", Logger: slog.New(slog.NewJSONHandler(&f.log, nil)),
		}))
		c := client.New(f.Provider)
		f.jobsOf("a", job{Takes: time.Hour}, job{Takes: time.Hour})
		sweep := func() (lines int, pending client.PendingItem) {
			t.Helper()
			before := strings.Count(f.log.String(), eventWorkerMissing)
			if _, err := k.Sweep(ctx); err != nil {
				t.Error(err)
			}
			p, err := c.Pending(ctx, "a", "", 0)
			if err != nil || len(p.Items) != 2 {
				t.Fatal(p, err)
			}
			return strings.Count(f.log.String(), eventWorkerMissing) - before, p.Items[0]
		}
		if lines, x := sweep(); lines > 0 || x.NoWorker {
			t.Errorf("at once: got %d lines, item %+v", lines, x)
		}
		time.Sleep(2 * time.Minute)
		if lines, x := sweep(); lines > 0 || !x.NoWorker || !x.WorkerSeenAt.IsZero() {
			t.Errorf("after two minutes: got %d lines, item %+v", lines, x)
		}
		time.Sleep(2 * time.Minute)
		if lines, _ := sweep(); lines != 1 {
			t.Errorf("after four minutes: got %d lines, want 1", lines)
		}
		f.wantMetric(map[string]any{"level": "WARN", "hub": "shop", "queue": "default", "ActivitiesWithoutWorker": 2.0})
		w := f.worker(nil)
		if err := w.ReportStart(ctx); err != nil {
			t.Fatal(err)
		}
		done := f.handled(ctx, w)
		started := time.Now()
		for range 25 { // the activities run for an hour, and the queue is empty
			time.Sleep(2 * time.Minute)
			if lines, x := sweep(); lines > 0 || x.NoWorker {
				t.Fatalf("%v after a worker has started: got %d lines, item %+v", time.Since(started), lines, x)
			}
		}
		<-done
		time.Sleep(time.Hour)
		f.jobsOf("b", job{}) // the next release of the worker crashes at init
		for range 3 {
			time.Sleep(2 * time.Minute)
			if _, err := k.Sweep(ctx); err != nil {
				t.Error(err)
			}
		}
		f.wantMetric(map[string]any{
			"queue": "default", "ActivitiesWithoutWorker": 1.0, "build": "dev",
			"startedAt": started.Format(time.RFC3339),
		})
		p, err := c.Pending(ctx, "b", "", 0)
		if err != nil || len(p.Items) != 1 || !p.Items[0].NoWorker || time.Since(p.Items[0].WorkerSeenAt) < time.Hour {
			t.Errorf("got %+v, error %v", p, err)
		}
	})
}

// wantMetric fails the test unless the last line of the sweeper has these values, and is a metric with its dimensions.
func (f *jobHub) wantMetric(want map[string]any) {
	f.t.Helper()
	var last map[string]any
	for line := range strings.Lines(f.log.String()) {
		if strings.Contains(line, eventWorkerMissing) {
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	for name, v := range want {
		if last[name] != v {
			f.t.Errorf("%s: got %v, want %v", name, last[name], v)
		}
	}
	aws, err := json.Marshal(last["_aws"])
	if err != nil || !strings.Contains(string(aws),
		`"CloudWatchMetrics":[{"Dimensions":[["hub","queue"]],"Metrics":[{"Name":"ActivitiesWithoutWorker","Unit":"Count"}],"Namespace":"perdure"}],"Timestamp":`) {
		f.t.Errorf("got %s, error %v, want a metric", aws, err)
	}
}

// A worker reports its start, and reports every five minutes while it runs one long activity or many short ones.
// Reports run concurrently with its work, which makes no additional call.
func TestWorkerReport_isSentEveryFiveMinutes(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		w := f.worker(nil)
		if err := w.ReportStart(ctx); err != nil || f.reports() != 1 {
			t.Fatal(f.reports(), err)
		}
		for n := range 60 {
			f.jobsOf(string(rune('a'+n)), job{})
			<-f.handled(ctx, w)
			time.Sleep(10 * time.Second)
		}
		if n := f.reports(); n != 2 {
			t.Errorf("got %d reports in ten minutes of short activities, want 2", n)
		}
		f.jobsOf("long", job{Takes: time.Hour})
		<-f.handled(ctx, w)
		if n := f.reports(); n < 2+11 || n > 2+13 {
			t.Errorf("got %d reports after another hour of a long activity", n)
		}
		time.Sleep(time.Second) // a report may be running
		before := f.reports()
		time.Sleep(24 * time.Hour)
		if n := f.reports(); n != before {
			t.Errorf("got %d reports of an idle worker, want 0", n-before)
		}
	})
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		w := f.worker(nil)
		if err := w.ReportStart(ctx); err != nil {
			t.Fatal(err)
		}
		f.jobsOf("a", job{})
		made := len(f.made())
		<-f.handled(ctx, w)
		if got, want := strings.Join(f.operations(made), " "), "ReceiveMessage Query SendMessageBatch"; got != want {
			t.Errorf("got calls %s, want %s", got, want)
		}
	})
}

// A failed report delays no work, and is not repeated before the next one is due.
func TestWorkerReport_fails_delaysNoWork(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		refused := f.failing("UpdateItem")
		refused.Store(true)
		w := f.worker(nil)
		if err := w.ReportStart(ctx); err == nil {
			t.Error("ReportStart did not fail")
		}
		time.Sleep(provider.WorkerReportInterval)
		f.jobsOf("a", job{})
		if failed := <-f.handled(ctx, w); len(failed) > 0 {
			t.Errorf("got failed records %v", failed)
		}
		f.wantSent(1)
	})
}
