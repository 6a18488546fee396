package dispatch_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Redelivered records run concurrently unless a crash marker exists. An outage leaves no markers.

var backlog = flag.Int("backlog", manyOr(500),
	"number of work items of TestR13_backlogAfterAnOutage_isProcessedAsFast, 500 per orchestration")

// sleepLikeAWS waits for the typical duration of a call to AWS.
func sleepLikeAWS(ctx context.Context, c simaws.Call) {
	took := 5 * time.Millisecond
	switch c.Service {
	case "Lambda":
		return
	case "SQS":
		took = 10 * time.Millisecond
	}
	t := time.NewTimer(took)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// drainStats contains the costs of processing a backlog.
type drainStats struct {
	took        time.Duration
	invocations int64
	deliveries  int // of work items, while they were processed
	most        int // maximum of deliveries of one item, including the outage
	ran         int64
	failed      int
}

// drainBacklog schedules a backlog, delivers all of it without result for each round of an outage, and then runs ten
// processes.
func drainBacklog(t *testing.T, items, outage int) (d drainStats) {
	t.Helper()
	const each = 500
	var ran atomic.Int64
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "work", func(ctx context.Context, n int) (int, error) {
		ran.Add(1)
		time.Sleep(100 * time.Millisecond)
		return n, ctx.Err()
	})
	perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		fs := make([]*perdure.Future[int], n)
		for i := range fs {
			fs[i] = perdure.CallActivityByName[int](ctx, "work", 1)
		}
		return sumOf(ctx, fs)
	})
	var mu sync.Mutex
	var last time.Time
	serving := false
	o := simhub.Options{Registry: r, Concurrency: 10, CacheBytes: 1 << 30}
	o.Intercept = func(ctx context.Context, c simaws.Call, next func() error) error {
		if !serving {
			return next()
		}
		if ms, ok := c.Input.([]sqstypes.Message); ok && isWork(*ms[0].Body) {
			mu.Lock()
			for i := range ms {
				d.deliveries++
				d.most = max(d.most, simhub.Records(ms[i : i+1])[0].ReceiveCount)
			}
			d.invocations++
			mu.Unlock()
			defer func() {
				mu.Lock()
				last = time.Now()
				mu.Unlock()
			}()
		}
		sleepLikeAWS(ctx, c)
		return next()
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		for n := range items / each {
			id := fmt.Sprintf("w-%d", n)
			start := provider.Start{InstanceID: id, Name: "works", Input: encoded(t, each), StartID: id}
			if _, err := h.Provider.StartOrchestration(ctx, start); err != nil {
				t.Fatal(err)
			}
		}
		for len(h.receiveAndTurn()) > 0 {
			h.calls = nil
		}
		for range outage {
			if n := h.deliverAndCrash("default", "sim://default"); n != items {
				t.Fatalf("got %d work items, want %d", n, items)
			}
		}
		serving = true
		began := time.Now()
		h.serveFor(4 * time.Hour)
		d.took, d.ran = last.Sub(began), ran.Load()
		for n := range items / each {
			in, err := h.Provider.ReadInstance(ctx, fmt.Sprintf("w-%d", n))
			if err != nil || in.Status != provider.StatusCompleted {
				d.failed++
			}
		}
	})
	return d
}

// deliverAndCrash receives all visible records of a queue and releases them.
func (h *hub) deliverAndCrash(queue, url string) int {
	h.t.Helper()
	var all []provider.Record
	for records := h.receive(url); len(records) > 0; records = h.receive(url) {
		all = append(all, records...)
	}
	if err := h.Provider.AbandonRecords(h.t.Context(), queue, 0, all...); err != nil {
		h.t.Fatal(err)
	}
	h.calls = nil
	return len(all)
}

// isWork reports whether a message is a work item.
func isWork(body string) bool {
	var w struct {
		Attempt int `json:"attempt"`
	}
	return json.Unmarshal([]byte(body), &w) == nil && w.Attempt > 0
}

// receiveAndTurn passes the visible inbox records to the first orchestrator.
func (h *hub) receiveAndTurn() []provider.Record {
	h.t.Helper()
	records := h.receive(h.Provider.Config().InboxURL)
	if len(records) > 0 {
		failed := h.Orchestrators[0].HandleRecords(h.t.Context(), records)
		done := slices.DeleteFunc(slices.Clone(records), func(r provider.Record) bool {
			return slices.Contains(failed, r.ID)
		})
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, done...)
	}
	return records
}

// In an outage, a backlog was delivered several times without any run. Afterwards, the backlog is processed as fast as
// any other backlog, with one delivery per item, and no item fails.
func TestR13_backlogAfterAnOutage_isProcessedAsFast(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	faultless, after := drainBacklog(t, *backlog, 0), drainBacklog(t, *backlog, 4)
	rate := float64(faultless.took) / float64(after.took)
	t.Logf("%d items: %v in %d invocations without an outage; %v in %d invocations and %d deliveries after an "+
		"outage (%.0f %%)",
		*backlog, faultless.took, faultless.invocations, after.took, after.invocations, after.deliveries, 100*rate)
	if rate < 0.8 || after.deliveries > *backlog*105/100 || after.failed > 0 || after.ran != int64(*backlog) {
		t.Errorf("without an outage %+v, after an outage %+v", faultless, after)
	}
}

// externalKiller kills all worker processes at fixed intervals.
type externalKiller struct {
	every     time.Duration
	from, to  time.Time
	mu        sync.Mutex
	startedAt map[string]time.Time // starts of worker invocations, by name
	most      int                  // deliveries of one work item
	killed    int
}

// intercept runs inside an interceptor of simhub.Crash.
func (s *externalKiller) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	s.note(c)
	sleepLikeAWS(ctx, c)
	name, died := simhub.Process(ctx)
	s.mu.Lock()
	if startedAt, worker := s.startedAt[name]; worker && !died && s.moments(time.Now()) > s.moments(startedAt) {
		s.killed++
		simhub.Die(ctx)
	}
	s.mu.Unlock()
	return crashable(ctx, c, next)
}

// moments returns the number of kills before t.
func (s *externalKiller) moments(t time.Time) int64 {
	if t.After(s.to) {
		t = s.to
	}
	return int64(max(t.Sub(s.from), 0) / s.every)
}

// note records the start of a worker invocation, and the deliveries of its records.
func (s *externalKiller) note(c simaws.Call) {
	ms, ok := c.Input.([]sqstypes.Message)
	if !ok || !isWork(*ms[0].Body) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startedAt[*ms[0].ReceiptHandle] = time.Now()
	for _, r := range simhub.Records(ms) {
		s.most = max(s.most, r.ReceiveCount)
	}
}

// For five minutes, all worker processes crash twice a second for an external reason, while 264 orchestrations run. No
// orchestration fails, and no record is delivered endlessly.
func TestR13_processesAreKilledExternally_nothingIsPoison(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for name, c := range map[string]struct {
		visibility time.Duration
		outage     int // deliveries without result before the test
	}{
		"visibility timeout of the function": {15 * time.Minute, 0},
		"short visibility timeout":           {30 * time.Second, 0},
		"after an outage":                    {30 * time.Second, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const orchestrations, most = 264, 5 * time.Minute
			var ran atomic.Int64
			r := perdure.NewRegistry()
			perdure.AddActivity(r, "work", func(_ context.Context, n int) (int, error) {
				ran.Add(1)
				time.Sleep(300 * time.Millisecond)
				return n, nil
			})
			perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
				sum := 0
				for range n {
					var fs []*perdure.Future[int]
					for range n {
						fs = append(fs, perdure.CallActivityByName[int](ctx, "work", 1))
					}
					more, err := sumOf(ctx, fs)
					if err != nil {
						return 0, err
					}
					sum += more
				}
				return sum, nil
			})
			s := &externalKiller{every: 500 * time.Millisecond, startedAt: map[string]time.Time{}}
			o := simhub.Options{Registry: r, Intercept: s.intercept, Concurrency: 10, WorkVisibility: c.visibility}
			inBubble(t, o, func(ctx context.Context, h *hub) {
				begin := func(apart time.Duration) {
					for n := range orchestrations {
						id := fmt.Sprintf("o-%d", n)
						start := provider.Start{InstanceID: id, Name: "works", Input: encoded(t, 3), StartID: id}
						if _, err := h.Provider.StartOrchestration(ctx, start); err != nil {
							t.Error(err)
						}
						time.Sleep(apart)
					}
				}
				if c.outage > 0 {
					begin(0)
					for len(h.receiveAndTurn()) > 0 {
					}
				}
				for range c.outage {
					h.deliverAndCrash("default", "sim://default")
				}
				s.from = time.Now().Add(217 * time.Millisecond)
				s.to = s.from.Add(most)
				if c.outage == 0 {
					go begin(most / orchestrations)
				}
				h.serveFor(6 * time.Hour)
				failed := 0
				for n := range orchestrations {
					in, err := h.Provider.ReadInstance(ctx, fmt.Sprintf("o-%d", n))
					if err != nil || in.Status != provider.StatusCompleted {
						failed++
					}
				}
				t.Logf("killed %d processes; %d activities ran %d times with at most %d deliveries; %d of %d "+
					"orchestrations failed",
					s.killed, orchestrations*9, ran.Load(), s.most, failed, orchestrations)
				if failed > 0 || s.most >= 50 || s.killed < 200 {
					t.Errorf("got %d failed orchestrations, at most %d deliveries, %d killed processes; want 0, "+
						"below 50, at least 200",
						failed, s.most, s.killed)
				}
				h.wantNoDeadLetters("sim://default-dead")
			})
		})
	}
}

// wantNoDeadLetters fails the test unless a dead-letter queue is empty.
func (h *hub) wantNoDeadLetters(url string) {
	h.t.Helper()
	if bodies, reasons := h.dead(url); len(bodies) > 0 {
		h.t.Errorf("got %d dead letters in %s, want none; the first is %s: %s", len(bodies), url, bodies[0], reasons[0])
	}
}

// An activity that kills its process runs together with others in its first three deliveries. In at most one more
// delivery, the other activities of its batch wait for it. In later deliveries, they run before it.
func TestR13_activityKillsItsProcess_fewOtherActivitiesAreInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ killers, healthy, processes int }{
		"in one batch":     {1, 9, 1},
		"among a thousand": {1, 1000, 10},
		"ten of a hundred": {10, 90, 10},
		"ten in one batch": {10, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &crashingActivity{}
			r := registry()
			perdure.AddActivity(r, "deadly", d.run)
			var ran atomic.Int64
			perdure.AddActivity(r, "work", func(_ context.Context, n int) (int, error) {
				ran.Add(1)
				time.Sleep(100 * time.Millisecond)
				return n, nil
			})
			perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				var healthy, killers []*perdure.Future[int]
				for n := range c.healthy {
					healthy = append(healthy, perdure.CallActivityByName[int](ctx, "work", n))
					if c.killers > 0 && n%max(c.healthy/c.killers, 1) == 0 && len(killers) < c.killers {
						killers = append(killers, perdure.CallActivityByName[int](ctx, "deadly", 1))
					}
				}
				for len(killers) < c.killers {
					killers = append(killers, perdure.CallActivityByName[int](ctx, "deadly", 1))
				}
				poison := 0
				for _, k := range killers {
					if _, err := k.Await(ctx); err != nil {
						poison++
					}
				}
				_, err := sumOf(ctx, healthy)
				return poison, err
			})
			var mu sync.Mutex
			deliveries, worst, most := 0, map[string]int{}, 0
			o := simhub.Options{Registry: r, Concurrency: c.processes}
			o.Intercept = func(ctx context.Context, call simaws.Call, next func() error) error {
				if ms, ok := call.Input.([]sqstypes.Message); ok && isWork(*ms[0].Body) {
					mu.Lock()
					for _, r := range simhub.Records(ms) {
						if most = max(most, r.ReceiveCount); strings.Contains(r.Body, `"name":"work"`) {
							deliveries++
							worst[r.ID]++
						}
					}
					mu.Unlock()
				}
				sleepLikeAWS(ctx, call)
				return crashable(ctx, call, next)
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				in := h.start("works", 0)
				end := h.finish(in)
				lost, perOne := deliveries-c.healthy, 0
				for _, n := range worst {
					perOne = max(perOne, n-1)
				}
				t.Logf("%d of %d activities kill: they ran %d times and cost %d deliveries of others, at most %d of "+
					"one activity; "+
					"the maximum of deliveries is %d; the instance took %v",
					c.killers, c.killers+c.healthy, d.ran.Load(), lost, perOne, most, end.Time.Sub(in.CreatedAt))
				if string(end.Output) != fmt.Sprint(c.killers) || d.ran.Load() > int64(13*c.killers) {
					t.Errorf("ended with %s %s after %d crashes", end.String(), end.Output, d.ran.Load())
				}
				if lost > 36*c.killers || c.killers == 1 && perOne > 4 {
					t.Errorf("got %d lost deliveries of others, at most %d of one; want up to %d, and up to 4 for "+
						"one killer activity",
						lost, perOne, 36*c.killers)
				}
			})
		})
	}
}
