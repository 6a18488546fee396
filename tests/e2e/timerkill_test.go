package e2e_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
)

var kills = flag.Int("kills", 1,
	"how often TestTimers_renewerIsKilledAtAnyMoment kills the renewer, with 20 timers each")

// timersAKill is the number of timers that are nearly due when the renewer is killed. Queue delays have whole seconds,
// so the renewer waits for the remaining time.
const (
	timersAKill = 20
	nearly      = 3950 * time.Millisecond
)

// killRenewer starts timers, kills the renewer shortly before they are due, and returns the lateness of each timer.
func killRenewer(t *testing.T, round int, before time.Duration) (late []time.Duration, killed int) {
	t.Helper()
	var instances []string
	for n := range timersAKill {
		instance, err := hub.client.Start(t.Context(), "timer", nearly,
			client.WithInstanceID(id(t, round*timersAKill+n)))
		if err != nil {
			t.Fatal(err)
		}
		instances = append(instances, instance)
	}
	due := time.Now().Add(nearly) // when the last timer is due; the others are due moments before
	<-time.After(time.Until(due.Add(-before)))
	killed = killFunction(t, "-renewer")
	for _, instance := range instances {
		if _, err := hub.client.Wait(t.Context(), instance); err != nil {
			t.Fatal(err)
		}
		late = append(late, lateness(t, hub.client, instance))
	}
	return late, killed
}

// If a renewer is killed while it waits for timers, the timers are late by at most ten seconds. Its lease of 8 s ends,
// and another renewer receives the timers.
func TestTimers_renewerIsKilledWhileItWaits_areLateByTenSecondsAtMost(t *testing.T) {
	shortrun.Skip(t)
	late, killed := killRenewer(t, 0, 300*time.Millisecond)
	slices.Sort(late)
	t.Logf("killed %d processes; lateness of %d timers: p50 %v, max %v", killed, len(late), late[len(late)/2],
		late[len(late)-1])
	if killed == 0 || late[0] < 0 || late[len(late)-1] > 10*time.Second {
		t.Errorf("killed %d processes: got timer delays of %v to %v", killed, late[0], late[len(late)-1])
	}
}

// The renewer is killed at an arbitrary moment. Each timer fires, and none fires early. This command measures lateness:
// go test ./tests/e2e -run TestTimers_renewerIsKilledAtAnyMoment -v -kills 10
func TestTimers_renewerIsKilledAtAnyMoment_fire(t *testing.T) {
	shortrun.Skip(t)
	var all []time.Duration
	processes := 0
	for round := range *kills {
		late, killed := killRenewer(t, round, rand.N(1500*time.Millisecond)-200*time.Millisecond)
		all, processes = append(all, late...), processes+killed
	}
	slices.Sort(all)
	n := len(all)
	t.Logf("killed %d processes; lateness of %d timers: p50 %v, p99 %v, max %v", processes, n, all[n/2], all[n*99/100],
		all[n-1])
	if all[0] < 0 {
		t.Errorf("a timer fired %v early", -all[0])
	}
}
