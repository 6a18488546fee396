package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// holderBy is a holder of tokens whose clock is off by some time.
func (a *asking) holderBy(off time.Duration) *client.Client {
	return client.New(a.Provider, client.WithClock(func() time.Time { return time.Now().Add(off) }))
}

// beatEvery has a holder send a heartbeat now and then, while the functions run.
func (a *asking) beatEvery(ctx context.Context, holder *client.Client, token string, every, d time.Duration) {
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

// A holder's clock is a month ahead: its heartbeat counts, once, and not for a month. One by a right clock counts behind it.
func TestR26AHeartbeatOfTomorrowKeepsNothingAliveForEver(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Heartbeat: 5 * time.Minute})
		if _, err := a.holderBy(30*24*time.Hour).HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Fatal(err)
		}
		a.beatEvery(ctx, a.client, a.token(0), time.Minute, time.Hour)
		a.wantOpen(in)
		a.serveFor(15 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
		a.serveFor(time.Hour)
		a.checkRest()
	})
}

// A holder's clock is behind by more than the timeout, or ahead: its heartbeats keep the attempt alive, as it is answered.
func TestR26HeartbeatsByAnotherClockCount(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, -6 * time.Minute, -2 * time.Minute, 6 * time.Minute, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
				in := a.begin(question{Heartbeat: 5 * time.Minute})
				a.beatEvery(ctx, a.holderBy(off), a.token(0), time.Minute, 40*time.Minute)
				a.wantOpen(in)
				a.serveFor(11 * time.Minute)
				a.wantEnd(in, "heartbeat timeout")
				a.checkRest()
			})
		})
	}
}

// The first attempt's holder was ahead of the second's: the heartbeats of the second count all the same.
func TestR26AHeartbeatOfTheNextAttemptCountsBehindALaterOne(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Heartbeat: 5 * time.Minute, Every: time.Minute})
		if _, err := a.holderBy(3*time.Hour).HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Fatal(err)
		}
		if err := a.client.FailActivity(ctx, a.token(0), context.DeadlineExceeded); err != nil {
			t.Fatal(err)
		}
		a.serveFor(90 * time.Second)
		a.beatEvery(ctx, a.client, a.token(1), time.Minute, 30*time.Minute)
		if n := len(a.handedOver()); n != 2 {
			t.Errorf("it ran %d times", n)
		}
		a.wantOpen(in)
	})
}

// A heartbeat timeout is about as short as the time in which a heartbeat is not written again.
func TestR26HeartbeatsOfAShortTimeoutAreWritten(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.start("asks", question{Heartbeat: 1200 * time.Millisecond})
		for len(a.handedOver()) == 0 {
			a.serveFor(100 * time.Millisecond)
		}
		a.beatEvery(ctx, a.client, a.token(0), 900*time.Millisecond, time.Minute)
		a.wantOpen(in)
		a.serveFor(2 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
	})
}

// A holder's clock says that the activity's whole time is over, which it is not: its heartbeat counts, and so does its result.
func TestR26AResultByAnotherClockCounts(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
			in := a.begin(question{ScheduleToClose: time.Hour, Heartbeat: 10 * time.Minute})
			a.serveFor(5 * time.Minute)
			holder := a.holderBy(off)
			if _, err := holder.HeartbeatActivity(ctx, a.token(0), nil); err != nil {
				t.Errorf("%v: heartbeat: %v", off, err)
			}
			if err := holder.CompleteActivity(ctx, a.token(0), "forty-two"); err != nil {
				t.Errorf("%v: complete: %v", off, err)
			}
			a.serveFor(time.Minute)
			a.wantEnd(in, "forty-two")
			a.serveFor(time.Hour) // its timers are over
			a.checkRest()
		})
	}
}

// A failure by a clock that is a month ahead, or behind, is followed by the next attempt after the policy's delay.
func TestR26AFailureByAnotherClockIsTriedAgainInTime(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-30 * 24 * time.Hour, 30 * 24 * time.Hour} {
		askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
			in := a.begin(question{Every: 10 * time.Minute})
			a.serveFor(time.Minute)
			if err := a.holderBy(off).FailActivity(ctx, a.token(0), errors.New("nobody is there")); err != nil {
				t.Fatal(err)
			}
			a.serveFor(8 * time.Minute)
			if n := len(a.handedOver()); n != 1 {
				t.Errorf("%v: %d attempts after 8 minutes", off, n)
			}
			a.serveFor(4 * time.Minute)
			if n := len(a.handedOver()); n != 2 {
				t.Fatalf("%v: %d attempts after 12 minutes", off, n)
			}
			if err := a.complete(1, "forty-two"); err != nil {
				t.Fatal(err)
			}
			a.serveFor(time.Hour)
			a.wantEnd(in, "forty-two")
			a.checkRest()
		})
	}
}
