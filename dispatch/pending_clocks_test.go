package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// clientWithClock returns a client whose clock differs by the given duration.
func (a *tokenHub) clientWithClock(off time.Duration) *client.Client {
	return client.New(a.Provider, client.WithClock(func() time.Time { return time.Now().Add(off) }))
}

// heartbeatEvery sends heartbeats at an interval while the hub runs for d.
func (a *tokenHub) heartbeatEvery(ctx context.Context, holder *client.Client, token string, every, d time.Duration) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := holder.HeartbeatActivity(ctx, token, nil); err != nil {
				a.t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(every):
			}
		}
	}()
	a.serveFor(d)
	close(stop)
	<-done
}

// The clock of a token holder is a month ahead. Its heartbeat counts once, not for a month, and later heartbeats by a
// correct clock count.
func TestR26_heartbeatFromTheFuture_countsOnce(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{Heartbeat: 5 * time.Minute})
		if _, err := a.clientWithClock(30*24*time.Hour).HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Fatal(err)
		}
		a.heartbeatEvery(ctx, a.client, a.token(0), time.Minute, time.Hour)
		a.wantOpen(in)
		a.serveFor(15 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
		a.serveFor(time.Hour)
		a.checkIdle()
	})
}

// The clock of a token holder is behind by more than the timeout, or ahead. Its accepted heartbeats keep the attempt
// open.
func TestR26_heartbeatsWithWrongClock_count(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, -6 * time.Minute, -2 * time.Minute, 6 * time.Minute, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
				in := a.begin(question{Heartbeat: 5 * time.Minute})
				a.heartbeatEvery(ctx, a.clientWithClock(off), a.token(0), time.Minute, 40*time.Minute)
				a.wantOpen(in)
				a.serveFor(11 * time.Minute)
				a.wantEnd(in, "heartbeat timeout")
				a.checkIdle()
			})
		})
	}
}

// The clock of the first attempt's holder was ahead of the clock of the second attempt's holder. The heartbeats of the
// second holder still count.
func TestR26_heartbeatEarlierThanLastAttempts_counts(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{Heartbeat: 5 * time.Minute, Every: time.Minute})
		if _, err := a.clientWithClock(3*time.Hour).HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Fatal(err)
		}
		if err := a.client.FailActivity(ctx, a.token(0), context.DeadlineExceeded); err != nil {
			t.Fatal(err)
		}
		a.serveFor(90 * time.Second)
		a.heartbeatEvery(ctx, a.client, a.token(1), time.Minute, 30*time.Minute)
		if n := len(a.passedTokens()); n != 2 {
			t.Errorf("got %d runs, want 2", n)
		}
		a.wantOpen(in)
	})
}

// The heartbeat timeout is about as short as the interval in which heartbeats are not written again.
func TestR26_shortHeartbeatTimeout_heartbeatsAreWritten(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.start("awaits-approval", question{Heartbeat: 1200 * time.Millisecond})
		for len(a.passedTokens()) == 0 {
			a.serveFor(100 * time.Millisecond)
		}
		a.heartbeatEvery(ctx, a.client, a.token(0), 900*time.Millisecond, time.Minute)
		a.wantOpen(in)
		a.serveFor(2 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
	})
}

// According to the clock of a token holder, the schedule-to-close timeout has expired. Its heartbeat and result still
// count.
func TestR26_resultWithWrongClock_counts(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
			in := a.begin(question{ScheduleToClose: time.Hour, Heartbeat: 10 * time.Minute})
			a.serveFor(5 * time.Minute)
			holder := a.clientWithClock(off)
			if _, err := holder.HeartbeatActivity(ctx, a.token(0), nil); err != nil {
				t.Errorf("%v: heartbeat: %v", off, err)
			}
			if err := holder.CompleteActivity(ctx, a.token(0), "forty-two"); err != nil {
				t.Errorf("%v: complete: %v", off, err)
			}
			a.serveFor(time.Minute)
			a.wantEnd(in, "forty-two")
			a.serveFor(time.Hour) // until its timers have fired
			a.checkIdle()
		})
	}
}

// A failure by a clock that is a month ahead or behind is retried after the delay of the policy.
func TestR26_failureWithWrongClock_isRetriedAfterTheDelay(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-30 * 24 * time.Hour, 30 * 24 * time.Hour} {
		withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
			in := a.begin(question{Every: 10 * time.Minute})
			a.serveFor(time.Minute)
			if err := a.clientWithClock(off).FailActivity(ctx, a.token(0), errors.New("no worker")); err != nil {
				t.Fatal(err)
			}
			a.serveFor(8 * time.Minute)
			if n := len(a.passedTokens()); n != 1 {
				t.Errorf("clock off by %v: got %d attempts after 8 minutes, want 1", off, n)
			}
			a.serveFor(4 * time.Minute)
			if n := len(a.passedTokens()); n != 2 {
				t.Fatalf("clock off by %v: got %d attempts after 12 minutes, want 2", off, n)
			}
			if err := a.complete(1, "forty-two"); err != nil {
				t.Fatal(err)
			}
			a.serveFor(time.Hour)
			a.wantEnd(in, "forty-two")
			a.checkIdle()
		})
	}
}
