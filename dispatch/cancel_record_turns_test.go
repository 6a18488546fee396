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

// Each turn writes its own part of the cancel record. Conformance tests of all providers cover rejected commits, lost
// responses, late turns of deleted instances and damaged histories. Tests of provider/dynamo cover records of the
// previous release and partially visible transactions. These tests cover lost memory, many turns, and workers that
// continue to read.

// racesRegistry returns an orchestration with a number of races. The event wins each race, and an activity loses.
// Another activity runs during all of them.
func racesRegistry(f *jobHub) *perdure.Registry {
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

// withRaces runs test with an instance that waits in its first race.
func withRaces(
	t *testing.T, o simhub.Options, races int, test func(ctx context.Context, f *jobHub, in provider.Instance),
) {
	t.Helper()
	f := &jobHub{causes: map[int64]error{}, seen: map[int64]time.Time{}}
	o.Registry = racesRegistry(f)
	inBubble(t, o, func(ctx context.Context, h *hub) {
		f.hub = h
		in := f.start("races", races)
		f.turn(0)
		test(ctx, f, in)
		time.Sleep(3 * time.Hour)
	})
}

// race ends race n in a turn of an environment.
func (f *jobHub) race(in provider.Instance, n, environment int) {
	f.t.Helper()
	time.Sleep(time.Duration(1+n*7919%1000) * time.Millisecond) // varies the times
	f.raise(in, fmt.Sprint("e", n), n)
	if failed := f.turn(environment); len(failed) > 0 {
		f.t.Fatalf("race %d: failed %v", n, failed)
	}
}

// Each of 3,000 races costs the same number of write units, except that one race in 64 also writes a block. A poll and
// the read before a start cost one read unit, independent of the number of decisions.
func TestCancelRecord_3000thRace_costsAsManyWriteUnitsAsTheFirst(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const races = 3200
	withRaces(t, simhub.Options{}, races, func(ctx context.Context, f *jobHub, in provider.Instance) {
		beside := f.receive("sim://default")[:1] // the activity that runs during all races
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
				t.Fatalf("race %d costs %d write units, want %d as the first", n, costs[n], costs[1])
			}
		}
		t.Logf("write units of races 1, 100, 1,000, 3,000: %d, %d, %d, %d; %d races complete a block, at most %d "+
			"units; average %.2f",
			costs[1], costs[100], costs[1000], costs[3000], blocks, most, float64(total)/races)
		if average := float64(total) / races; average > float64(costs[1])+0.15 {
			t.Errorf("got %.2f write units per race, want about %d as the first", average, costs[1])
		}

		time.Sleep(5 * time.Minute)
		f.Cloud.ResetCounts()
		time.Sleep(9*time.Second + 500*time.Millisecond)
		synctest.Wait()
		polls, c := f.Cloud.Counts()["DynamoDB.Query"], f.Cloud.Capacity()
		if t.Logf("%d polls after %d races: %v read units", polls, races, c.Read); polls < 9 ||
			c.Read > float64(polls) {
			t.Errorf("got %d polls with %v read units, want at least 9 of at most 1 unit each", polls, c.Read)
		}
		select {
		case <-over:
			t.Fatal("the long activity ended")
		default:
		}
		f.wantLosersNotRun(ctx, in)
		f.cancel(in, 3)
		<-over
		f.wantCause(3, perdure.ReasonSelectLoser)
	})
}

// wantLosersNotRun fails the test if a new worker runs a cancelled activity, old or recent, or reads too much.
func (f *jobHub) wantLosersNotRun(ctx context.Context, in provider.Instance) {
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
			f.t.Fatalf("got next segment %d, %v, want at least %d", next, err, last-back)
		}
		c := f.Cloud.Capacity()
		f.t.Logf("first read of an activity with %d later races: %v read units, %d queries, %d decisions",
			back, c.Read, f.Cloud.Counts()["DynamoDB.Query"], len(record))
		if back <= 20 && c.Read > 1 || back == 3000 && c.Read > 12 {
			f.t.Errorf("the first read of an activity with %d later races costs %v read units", back, c.Read)
		}
		first = max(first, int64(len(record)))
	}
	if first < last-1 {
		f.t.Errorf("got %d decisions of %d turns", first, last)
	}
	made := f.ran()
	for range 3 {
		records := f.receive("sim://default")
		if failed := f.worker(nil).HandleRecords(ctx, records); len(failed) > 0 {
			f.t.Errorf("got failed records %v, want none", failed)
		}
	}
	if f.ran() != made {
		f.t.Errorf("%d cancelled activities ran", f.ran()-made)
	}
}

// Turns run without a cache, or alternate between three environments. The cancel record matches the history.
func TestCancelRecord_coldTurns_matchesTheHistory(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const races = 150
	for name, o := range map[string]simhub.Options{"cold": {CacheBytes: 1}, "three environments": {Environments: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withRaces(t, o, races, func(ctx context.Context, f *jobHub, in provider.Instance) {
				for n := 1; n <= races; n++ {
					f.race(in, n, n%max(o.Environments, 1))
				}
				o, err := f.Provider.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: in.InstanceID},
					provider.Strong)
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
					t.Fatalf("got %d decisions in the record, %d in history, %v", len(got), len(want), err)
				}
				for i := range want {
					id, same := want[i].IDs[0].First,
						slices.Equal(got[i].IDs, want[i].IDs) && got[i].At.Equal(want[i].At)
					if got.Of(id).Reason != want[i].Reason || !same {
						t.Errorf("activity %d: got %+v, in history %+v", id, got.Of(id), want[i])
					}
				}
				blocks, before := 0, int64(0)
				for n := range int64(races + 10) {
					if b := f.item("x#"+in.ExecutionID, fmt.Sprintf("b#%010d", n)); len(b) > 0 {
						if after, ok := b["after"].(*ddbtypes.AttributeValueMemberN); !ok ||
							after.Value != fmt.Sprint(before) {
							t.Errorf("the record of segment %d refers to segment %v, want %d", n, b["after"], before)
						}
						before = n
					}
					if len(f.item("x#"+in.ExecutionID, fmt.Sprintf("f#%010d", n))) > 0 {
						blocks++
					}
				}
				if blocks != races/provider.CancelBlockTurns {
					t.Errorf("got %d blocks of %d turns, want %d", blocks, races, races/provider.CancelBlockTurns)
				}
			})
		})
	}
}

// 1. A worker has read the cancel record before the start of an activity, but the activity has not started.
// 2. A poll for another activity of the execution reads a later decision that cancels the first.
// 3. The first activity starts. Its next poll reads that decision again.
func TestCancelRecord_pollBeforeAStart_isReadAgain(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, forever, forever)
		records := f.receive("sim://default")
		if len(records) != 3 {
			t.Fatalf("got %d records, want 3", len(records))
		}
		slow := make(chan struct{})
		var reads atomic.Int64 // the second read is before the start of the last activity
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if readsCancels(c) && reads.Add(1) == 2 {
				<-slow
			}
			return err
		})
		w := f.worker(nil)
		late := slices.IndexFunc(records, func(r provider.Record) bool {
			return strings.Contains(r.Body, `"activityId":4,`)
		})
		first, second := make(chan []string, 1), make(chan []string, 1)
		go func() { first <- w.HandleRecords(ctx, slices.Concat(records[:late], records[late+1:])) }()
		time.Sleep(100 * time.Millisecond)
		go func() { second <- w.HandleRecords(ctx, records[late:late+1]) }()
		time.Sleep(100 * time.Millisecond)
		f.cancel(in, 3, 4)
		time.Sleep(5 * time.Minute)
		f.wantCause(3, perdure.ReasonSelectLoser) // a poll has read the decision, and later polls start after it
		close(slow)
		at := time.Now()
		<-second
		f.wantCause(4, perdure.ReasonSelectLoser)
		if took := time.Since(at); took > 1100*time.Millisecond {
			t.Errorf("the activity observed the cancellation after %v, want at most 1.1s", took)
		}
		f.cancel(in, 5)
		<-first
	})
}
