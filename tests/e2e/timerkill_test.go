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

// timersAKill are those that are nearly due when the renewer is killed. Queues delay by whole seconds, so the renewer
// waits for the rest of their time.
const (
	timersAKill = 20
	nearly      = 3950 * time.Millisecond
)

// killRenewer starts timers, kills the renewer so long before they are due, and returns how late each fires.
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
	due := time.Now().Add(nearly) // of the last; the others are due moments before
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

// A renewer that is killed while it waits until timers are due makes them late by ten seconds at most: its lease of 8 s
// ends, and another takes them.
func TestTimers_renewerIsKilledWhileItWaits_areLateByTenSecondsAtMost(t *testing.T) {
	shortrun.Skip(t)
	late, killed := killRenewer(t, 0, 300*time.Millisecond)
	slices.Sort(late)
	t.Logf("killed %d processes; lateness of %d timers: p50 %v, max %v", killed, len(late), late[len(late)/2],
		late[len(late)-1])
	if killed == 0 || late[0] < 0 || late[len(late)-1] > 10*time.Second {
		t.Errorf("killed %d processes; timers are late by %v to %v", killed, late[0], late[len(late)-1])
	}
}

// A renewer is killed at any moment: each timer fires, none early. How late they are is measured by
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
		t.Errorf("a timer was early by %v", -all[0])
	}
}
