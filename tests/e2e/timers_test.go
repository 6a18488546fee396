package e2e_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/provider/dynamo"
)

// A timer is never early, and late by at most 1.5 seconds.
func TestTimers_shortDelay_fireOnTime(t *testing.T) {
	exact(t, hub.client, startTimers(t, hub.client, 20, 300*time.Millisecond, 130*time.Millisecond))
}

// Timers longer than the longest queue delay (2 s here) each need a schedule.
func TestTimers_longDelay_useSchedules(t *testing.T) {
	shortrun.Skip(t)
	const timers = 100
	before, seen := schedules(t), map[string]bool{}
	over := make(chan struct{})
	var polling sync.WaitGroup
	polling.Go(func() { // a schedule exists for seconds, because it is deleted after it fires
		look := time.NewTicker(200 * time.Millisecond)
		defer look.Stop()
		for {
			maps.Copy(seen, schedules(t))
			select {
			case <-look.C:
			case <-over:
				return
			}
		}
	})
	stop := sync.OnceFunc(func() {
		close(over)
		polling.Wait()
	})
	defer stop()
	exact(t, hub.client, startTimers(t, hub.client, timers, 8*time.Second, 41*time.Millisecond))
	stop()
	for name := range schedules(t) {
		if !before[name] {
			t.Errorf("schedule %s was not deleted", name)
		}
	}
	maps.DeleteFunc(seen, func(name string, _ bool) bool { return before[name] })
	if len(seen) != timers {
		t.Errorf("got %d schedules for %d timers", len(seen), timers)
	}
}

// In a hub without schedules, long timers hop between queue delays.
func TestTimers_hubWithoutSchedules_useSeveralQueueDelays(t *testing.T) {
	shortrun.Skip(t)
	c, timers := hub.client, 10 // on LocalStack the shared hub has no schedules, and a turn takes a second
	if !onLocalStack {
		c, timers = newHubWithoutSchedules(t), 50
	}
	exact(t, c, startTimers(t, c, timers, 5*time.Second, 41*time.Millisecond))
	if n := len(schedules(t)); n != 0 {
		t.Errorf("got %d schedules", n)
	}
}

// newHubWithoutSchedules starts a separate hub without schedules, and returns its client.
func newHubWithoutSchedules(t *testing.T) *client.Client {
	t.Helper()
	cloud, err := up(t.Context(), "hops", "--param", "Timers=hops", "--param", "TimerLongestDelay=2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Stop(); err != nil {
			t.Error(err)
		}
	})
	for name, value := range cloud.Env {
		t.Setenv(name, value)
	}
	t.Setenv(client.EndpointVariable, cloud.API)
	p, err := dynamo.Open(t.Context(), "hops")
	if err != nil {
		t.Fatal(err)
	}
	return client.New(p)
}

// startTimers starts instances with a timer each. The duration grows from instance to instance.
func startTimers(t *testing.T, c *client.Client, timers int, first, more time.Duration) (instances []string) {
	t.Helper()
	for n := range timers {
		instance, err := c.Start(t.Context(), "timer", first+time.Duration(n)*more, client.WithInstanceID(id(t, n)))
		if err != nil {
			t.Fatal(err)
		}
		instances = append(instances, instance)
	}
	return instances
}

// exact waits for instances with a timer each. It fails the test if a timer was early, or if more than one percent were
// late.
func exact(t *testing.T, c *client.Client, instances []string) {
	t.Helper()
	var late []time.Duration
	for _, instance := range instances {
		if _, err := c.Wait(t.Context(), instance); err != nil {
			t.Fatal(err)
		}
		late = append(late, lateness(t, c, instance))
	}
	slices.Sort(late)
	n := len(late)
	p99 := late[n*99/100]
	t.Logf("lateness of %d timers: p50 %v, p99 %v, max %v", n, late[n/2], p99, late[n-1])
	if late[0] < 0 {
		t.Errorf("a timer fired %v early", -late[0])
	}
	limit := 1500 * time.Millisecond
	if onLocalStack {
		// LocalStack polls delayed messages once a second and runs one batch of a queue at a time, so timers are late
		limit = 30 * time.Second
	}
	if p99 > limit {
		t.Errorf("p99 of timer delays: got %v", p99)
	}
}

// lateness returns the time between the due time of a timer and the turn that observed it.
func lateness(t *testing.T, c *client.Client, instance string) time.Duration {
	t.Helper()
	var due time.Time
	for _, e := range valid(t, c, instance) {
		if e.FireAt != nil {
			due = *e.FireAt
		}
		if e.Kind == "TimerFired" {
			return e.Time.Sub(due)
		}
	}
	t.Fatalf("%s: got no fired timer", instance)
	return 0
}

// schedules returns the names of the current schedules.
func schedules(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Error(err)
		return names
	}
	pages := scheduler.NewListSchedulesPaginator(scheduler.NewFromConfig(cfg), &scheduler.ListSchedulesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Error(err)
			return names
		}
		for i := range page.Schedules {
			names[*page.Schedules[i].Name] = true
		}
	}
	return names
}
