package dispatch_test

import (
	"context"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// The holder of a token sends a heartbeat after the activity has ended. Every client reports the end, with or without
// an earlier heartbeat.
func TestHeartbeat_activityHasEnded_reportsTheEnd(t *testing.T) {
	t.Parallel()
	for name, heartbeats := range map[string]bool{
		"heartbeat before the end": true, "no heartbeat before the end": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
				in := a.begin(question{CancelsAfter: time.Hour})
				another := client.New(a.Provider)
				if heartbeats {
					_ = must(a.client.HeartbeatActivity(ctx, a.token(0), "there"))
				}
				if err := a.complete(0, "once"); err != nil {
					t.Fatal(err)
				}
				a.serveFor(time.Minute)
				a.wantOpen(in)
				was := must(a.Provider.ReadActivityRecord(ctx, in.ExecutionID, 1))
				for _, holder := range []*client.Client{a.client, another, client.New(a.Provider)} {
					_, err := holder.HeartbeatActivity(ctx, a.token(0), "late")
					wantProblem(t, err, client.TokenActivityEnded)
				}
				if now := must(a.Provider.ReadActivityRecord(ctx, in.ExecutionID, 1)); !reflect.DeepEqual(now, was) {
					t.Errorf("got record %+v, want it unchanged: %+v", now, was)
				}
				a.serveFor(2 * time.Hour)
				a.wantEnd(in, "once")
			})
		})
	}
}

// The execution has ended, with or without a cancellation. The heartbeat reports the end and writes nothing.
func TestHeartbeat_executionHasEnded_writesNothing(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]question{"completed": {}, "cancelled": {CancelsAfter: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
				in := a.begin(q)
				if q.CancelsAfter == 0 {
					if err := a.complete(0, "once"); err != nil {
						t.Fatal(err)
					}
				}
				a.serveFor(2 * time.Minute)
				was := must(a.Provider.ReadActivityRecord(ctx, in.ExecutionID, 1))
				_, err := a.client.HeartbeatActivity(ctx, a.token(0), "late")
				wantProblem(t, err, client.TokenExecutionEnded)
				if now := must(a.Provider.ReadActivityRecord(ctx, in.ExecutionID, 1)); !reflect.DeepEqual(now, was) {
					t.Errorf("got record %+v, want it unchanged: %+v", now, was)
				}
			})
		})
	}
}

// 1. A client's heartbeat reads the open activity.
// 2. A session commits the end of the activity.
// 3. The heartbeat writes its record. The next heartbeat reports the end.
func TestHeartbeat_endIsCommittedBeforeItsWrite_nextOneReportsTheEnd(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{CancelsAfter: time.Hour})
		ended := false
		a.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "UpdateItem" && !ended {
				ended = true
				if err := a.complete(0, "once"); err != nil {
					t.Error(err)
				}
				a.serveFor(time.Minute)
			}
			return next()
		})
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Error(err)
		}
		a.wantOpen(in)
		_, err := a.client.HeartbeatActivity(ctx, a.token(0), nil)
		wantProblem(t, err, client.TokenActivityEnded)
		a.serveFor(2 * time.Hour)
		a.wantEnd(in, "once")
	})
}

// Every heartbeat of a running attempt costs three reads and a write.
func TestHeartbeat_liveAttempt_costsThreeReadsAndAWrite(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		a.begin(question{StartToClose: time.Hour})
		for range 3 {
			a.serveFor(10 * time.Second)
			a.hub.mu.Lock()
			a.calls = nil
			a.hub.mu.Unlock()
			_ = must(a.client.HeartbeatActivity(ctx, a.token(0), nil))
			calls := map[string]int{}
			for _, c := range a.calls {
				calls[c.Operation]++
			}
			if want := map[string]int{"GetItem": 2, "Query": 1, "UpdateItem": 1}; !maps.Equal(calls, want) {
				t.Errorf("got calls %v of a heartbeat, want %v", calls, want)
			}
		}
	})
}
