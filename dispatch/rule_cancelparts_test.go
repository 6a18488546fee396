package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The cancel record is written a turn at a time. What could hurt it, by itself: the commit that is refused, its lost response, the late
// turn of a deleted instance and the damaged history are tests of every provider; a record of the release before, and half of a transaction
// that is seen, are provider/dynamo's. Here is what the engine adds: memory that is lost, many turns, and workers that read on.

// racing is an orchestration of so many races: of each the event wins, and an activity loses. One activity runs beside them all.
func racing(f *floor) *perdure.Registry {
	r := f.registry()
	perdure.AddOrchestration(r, "races", func(ctx *perdure.OrchestrationContext, races int) (int, error) {
		beside := perdure.CallActivityByName[string](ctx, "job", forever)
		for i := range races {
			slow := perdure.CallActivityByName[string](ctx, "job", job{})
			if _, err := perdure.Select(ctx, perdure.WaitForExternalEvent[int](ctx, "add"), slow); err != nil {
				return i, err
			}
		}
		_, err := beside.Await(ctx)
		return races, err
	})
	return r
}

// atTheRaces runs f with an instance that waits in its first race.
func atTheRaces(t *testing.T, o simhub.Options, races int, test func(ctx context.Context, f *floor, in provider.Instance)) {
	t.Helper()
	f := &floor{causes: map[int64]error{}, seen: map[int64]time.Time{}}
	o.Registry = racing(f)
	inBubble(t, o, func(ctx context.Context, h *hub) {
		f.hub = h
		in := f.start("races", races)
		f.turn(0)
		test(ctx, f, in)
		time.Sleep(3 * time.Hour)
	})
}

// race ends race n, in one turn of an environment.
func (f *floor) race(in provider.Instance, n, environment int) {
	f.t.Helper()
	time.Sleep(time.Duration(1+n*7919%1000) * time.Millisecond) // no two are alike
	f.raise(in, fmt.Sprint("e", n), n)
	if failed := f.turn(environment); len(failed) > 0 {
		f.t.Fatalf("race %d: failed %v", n, failed)
	}
}

// The 3,000th race costs as many write units as the first, and so does each other, but for one in 64 that writes a block; who looks
// after an activity reads a unit a poll, however much was decided, and so does who begins one.
func TestTheThreeThousandthRaceCostsAsManyWriteUnitsAsTheFirst(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const races = 3200
	atTheRaces(t, simhub.Options{}, races, func(ctx context.Context, f *floor, in provider.Instance) {
		beside := f.receive("sim://default")[:1] // the one that runs beside them all
		over := make(chan []string, 1)
		go func() { over <- f.worker(nil).HandleRecords(ctx, beside) }()
		costs := make([]int64, races+1)
		var blocks, total, most int64
		for n := 1; n <= races; n++ {
			f.Cloud.ResetCounts()
			f.race(in, n, 0)
			costs[n] = int64(f.Cloud.Capacity().Write)
			if total += costs[n]; n%provider.CancelBlockTurns == 0 {
				blocks, most = blocks+1, max(most, costs[n])
				continue
			}
			if costs[n] != costs[1] {
				t.Fatalf("race %d takes %d write units, the first %d", n, costs[n], costs[1])
			}
		}
		t.Logf("write units of race 1, 100, 1,000, 3,000: %d, %d, %d, %d; of the %d that complete a block %d at the most; %.2f a race on average",
			costs[1], costs[100], costs[1000], costs[3000], blocks, most, float64(total)/races)
		if average := float64(total) / races; average > float64(costs[1])+0.15 {
			t.Errorf("%.2f write units a race, the first takes %d", average, costs[1])
		}

		time.Sleep(5 * time.Minute)
		f.Cloud.ResetCounts()
		time.Sleep(9*time.Second + 500*time.Millisecond)
		synctest.Wait()
		polls, c := f.Cloud.Counts()["DynamoDB.Query"], f.Cloud.Capacity()
		if t.Logf("%d polls after %d races: %v read units", polls, races, c.Read); polls < 9 || c.Read > float64(polls) {
			t.Errorf("%d polls take %v read units", polls, c.Read)
		}
		select {
		case <-over:
			t.Fatal("the activity beside has ended")
		default:
		}
		f.wantLosersNotRun(ctx, in)
		f.cancel(in, 3)
		<-over
		f.wantCause(3, perdure.ReasonSelectLoser)
	})
}

// wantLosersNotRun has a worker that knows nothing find of activities old and young that they are cancelled.
func (f *floor) wantLosersNotRun(ctx context.Context, in provider.Instance) {
	f.t.Helper()
	o, err := f.Provider.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: in.InstanceID}, provider.Strong)
	if err != nil {
		f.t.Fatal(err)
	}
	first, last := int64(0), o.Head.Segment
	for _, back := range []int64{last, 3000, 1000, 100, 20, 1} {
		f.Cloud.ResetCounts()
		record, next, err := f.Provider.ReadCancels(ctx, in.ExecutionID, last-back)
		if err != nil || next < last-back {
			f.t.Fatalf("next %d, %v", next, err)
		}
		c := f.Cloud.Capacity()
		f.t.Logf("the first look at an activity since which %d races were decided: %v read units, %d queries, %d decisions", back, c.Read, f.Cloud.Counts()["DynamoDB.Query"], len(record))
		if back <= 20 && c.Read > 1 || back == 3000 && c.Read > 12 {
			f.t.Errorf("the first look at an activity since which %d races were decided takes %v read units", back, c.Read)
		}
		first = max(first, int64(len(record)))
	}
	if first < last-1 {
		f.t.Errorf("%d decisions of %d turns", first, last)
	}
	made := f.ran()
	for range 3 {
		records := f.receive("sim://default")
		if failed := f.worker(nil).HandleRecords(ctx, records); len(failed) > 0 {
			f.t.Errorf("failed %v", failed)
		}
	}
	if f.ran() != made {
		f.t.Errorf("%d ran that were cancelled", f.ran()-made)
	}
}

// Turns in memory that is lost after each, in three environments that know nothing of each other: the record says what history does.
func TestTheRecordOfColdTurnsSaysWhatHistoryDoes(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const races = 150
	for name, o := range map[string]simhub.Options{"cold": {CacheBytes: 1}, "three environments": {Environments: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atTheRaces(t, o, races, func(ctx context.Context, f *floor, in provider.Instance) {
				for n := 1; n <= races; n++ {
					f.race(in, n, n%max(o.Environments, 1))
				}
				o, err := f.Provider.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: in.InstanceID}, provider.Strong)
				if err != nil {
					t.Fatal(err)
				}
				events, err := o.Events()
				if err != nil {
					t.Fatal(err)
				}
				want := provider.CancelsOf(events)
				got, _, err := f.Provider.ReadCancels(ctx, in.ExecutionID, 0)
				if err != nil || len(want) != races || len(got) != len(want) {
					t.Fatalf("%d decisions, history has %d, %v", len(got), len(want), err)
				}
				for i := range want {
					if id := want[i].IDs[0].First; got.Of(id).Reason != want[i].Reason || !slices.Equal(got[i].IDs, want[i].IDs) || !got[i].At.Equal(want[i].At) {
						t.Errorf("activity %d: %+v, in history %+v", id, got.Of(id), want[i])
					}
				}
				blocks, before := 0, int64(0)
				for n := range int64(races + 10) {
					if b := f.item("x#"+in.ExecutionID, fmt.Sprintf("b#%010d", n)); len(b) > 0 {
						if after, ok := b["after"].(*ddbtypes.AttributeValueMemberN); !ok || after.Value != fmt.Sprint(before) {
							t.Errorf("what segment %d cancels is behind %v, want %d", n, b["after"], before)
						}
						before = n
					}
					if len(f.item("x#"+in.ExecutionID, fmt.Sprintf("f#%010d", n))) > 0 {
						blocks++
					}
				}
				if blocks != races/provider.CancelBlockTurns {
					t.Errorf("%d blocks of %d turns, want %d", blocks, races, races/provider.CancelBlockTurns)
				}
			})
		})
	}
}

// Interleaving: an activity's first look is over, and it waits to begin; a poll for its neighbour reads past a decision that concerns it,
// and finds nobody to tell. The next poll tells it.
func TestAPollForAnotherDoesNotPassOverWhoIsAboutToBegin(t *testing.T) {
	t.Parallel()
	onFloor(t, func(ctx context.Context, f *floor) {
		in := f.jobsOf("a", forever, forever, forever)
		records := f.receive("sim://default")
		if len(records) != 3 {
			t.Fatalf("%d records", len(records))
		}
		slow := make(chan struct{})
		var reads atomic.Int64 // the second is that before the start of the last
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if readsCancels(c) && reads.Add(1) == 2 {
				<-slow
			}
			return err
		})
		w := f.worker(nil)
		late := slices.IndexFunc(records, func(r provider.Record) bool { return strings.Contains(r.Body, `"activityId":4,`) })
		first, second := make(chan []string, 1), make(chan []string, 1)
		go func() { first <- w.HandleRecords(ctx, slices.Concat(records[:late], records[late+1:])) }()
		time.Sleep(100 * time.Millisecond)
		go func() { second <- w.HandleRecords(ctx, records[late:late+1]) }()
		time.Sleep(100 * time.Millisecond)
		f.cancel(in, 3, 4)
		time.Sleep(5 * time.Minute)
		f.wantCause(3, perdure.ReasonSelectLoser) // told by a poll: later ones begin behind that
		close(slow)
		at := time.Now()
		<-second
		f.wantCause(4, perdure.ReasonSelectLoser)
		if took := time.Since(at); took > 1100*time.Millisecond {
			t.Errorf("it was told after %v", took)
		}
		f.cancel(in, 5)
		<-first
	})
}
