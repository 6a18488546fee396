package runlease

import (
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

var now = time.Unix(1000, 0)

func client() *Client {
	return NewClient(nil, Options{
		Clock: func() time.Time { return now }, Timeout: 30 * time.Second, RenewalBuffer: 5 * time.Second,
		GracePeriod: 10 * time.Second,
	})
}

// A lease is renewed before its activity would be stopped, and the activity has ended when the lease ends.
func TestLease_isRenewedBeforeStopAndEnd(t *testing.T) {
	t.Parallel()
	c := client()
	run := c.Next(nil, &provider.LockedWorkItem{})
	l := c.Acquired(nil, run, &provider.RunClaim{Held: true})
	if !l.IsHeld() || !l.Until().Equal(now.Add(30*time.Second)) {
		t.Fatalf("the lease is %+v", l)
	}
	stop, end := c.StopAt(l, false), c.StopAt(l, true)
	if got := stop.Sub(now); got != 20*time.Second || !end.Equal(l.Until()) {
		t.Errorf("stopped after %v, at the latest %v", got, end)
	}
	if start, next := l.StartRenewal(now); start || !next.Equal(now.Add(15*time.Second)) {
		t.Errorf("renewal at %v", next)
	}
	if start, _ := l.StartRenewal(now.Add(15 * time.Second)); !start {
		t.Error("the renewal does not start")
	}
	if start, next := l.StartRenewal(now.Add(15 * time.Second)); start || !next.IsZero() {
		t.Error("two renewals run at once")
	}
	l.EndRenewal()
	if !c.Failed(l, now) || c.Failed(l, now) || !l.RenewAt().Equal(now.Add(500*time.Millisecond)) {
		t.Errorf("a failed renewal is retried at %v", l.RenewAt())
	}
	if again := c.Next(l, &provider.LockedWorkItem{}); again.Token != run.Token {
		t.Error("an extension has another token")
	}
}

// After another delivery has acquired the lease, the next claim is for a new lease.
func TestLease_lost_isNotExtended(t *testing.T) {
	t.Parallel()
	c := client()
	run := c.Next(nil, &provider.LockedWorkItem{})
	l := c.Acquired(nil, run, &provider.RunClaim{Held: true})
	l.Lose()
	if next := c.Next(l, &provider.LockedWorkItem{}); l.IsHeld() || next.Token == run.Token || next.Token == "" {
		t.Errorf("a lost lease is requested again: %+v", next)
	}
}
