package dispatch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Two builds run concurrently in warm environments. Cases that these tests cover:
//
//   - The canary reports at its cold start, blocks instances, and is rolled back. No environment of the old build
//     starts cold afterwards, so the sweeper must not regard the canary as the deployed build forever.
//   - An environment of the old build starts cold after the canary. It blocks an orchestration that only the canary
//     registers, and the canary becomes the deployed build.
//   - Both builds remain and report alternately. If each report counted as a deployment, each sweep would wake each
//     blocked instance. That costs a message, a turn, and possibly a segment each time.
//   - The last reporting build changes within a round of the sweeper. Instances that the other build blocks again are
//     behind the position of the round, and must not be woken at each change.
//   - A round that starts again at each change would never reach the end of the index.
//   - Many environments receive a request to report at the same time, or a request is delivered twice. A report writes
//     an item that all environments share.

// blockIn lets o process the messages of an instance until the instance is blocked.
func (h *hub) blockIn(o *dispatch.Orchestrator, in provider.Instance) {
	h.t.Helper()
	for range 3 {
		h.passRecords(o)
		time.Sleep(time.Minute)
	}
	if now := h.read(in); now.Status != provider.StatusBlocked {
		h.t.Fatalf("the instance is %s, want blocked", now.Status)
	}
}

// wantUnblocked sweeps every two minutes and lets o process the messages until the instance is no longer blocked.
func (h *hub) wantUnblocked(o *dispatch.Orchestrator, in provider.Instance, within time.Duration) {
	h.t.Helper()
	for from := time.Now(); h.read(in).Status == provider.StatusBlocked; time.Sleep(2 * time.Minute) {
		if time.Since(from) > within {
			h.t.Fatalf("the instance is still blocked after %v, although o can run it", time.Since(from))
		}
		if _, err := h.Renewer.Sweep(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		h.passRecords(o)
	}
}

func TestCanary_rolledBack_blockedInstanceContinues(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		time.Sleep(time.Minute)
		canary := h.orchestrator(sleeper(2, "plus"), "new")
		h.raise(in, "e", 1)
		h.blockIn(canary, in)
		h.wantUnblocked(h.Orchestrators[0], in, 5*time.Minute) // the alias now refers to the old build only
	})
}

func TestCanary_deployed_instanceBlockedByTheOldBuildContinues(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: versions("1")}, func(ctx context.Context, h *hub) {
		canary := h.orchestrator(sleeper(1, "add"), "new")
		in := h.start("sleeper", 0)
		time.Sleep(time.Minute)
		old := h.orchestrator(versions("1"), "test") // starts cold after the canary
		h.blockIn(old, in)
		h.wantUnblocked(canary, in, 5*time.Minute)
	})
}

// The canary has run in parallel with the old build for a long time, and both have reported. An instance that the
// canary blocked continues within an hour.
func TestCanary_longRunning_blockedInstanceContinuesWithinAnHour(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		canary := h.orchestrator(sleeper(2, "plus"), "new")
		h.raise(in, "e", 1)
		h.blockIn(canary, in)
		both := []*dispatch.Orchestrator{canary, canary, canary, h.Orchestrators[0]}
		for n := range 100 {
			woken, err := h.Renewer.Sweep(ctx)
			if err != nil {
				t.Fatal(err)
			}
			o := both[n%len(both)]
			if woken > 0 {
				o = canary // receives all wakes of the instance, while both builds report
			}
			h.passRecords(o)
			time.Sleep(2 * time.Minute)
		}
		h.wantUnblocked(h.Orchestrators[0], in, time.Hour)
	})
}

func TestCanary_bothBuildsStay_blockedInstanceIsWokenRarely(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]float64{"a tenth": 0.1, "half": 0.5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a, b atomic.Int64
			inBubble(t, simhub.Options{Registry: countingRuns(&a, awaits(1, "plus"))},
				func(ctx context.Context, h *hub) {
					in := h.block(countingRuns(new(atomic.Int64), awaits(1, "add")))
					canary := h.orchestrator(countingRuns(&b, awaits(1, "times")), "new")
					dice := rand.New(rand.NewPCG(1, 2))
					wakes := 0
					for range 24 * 30 { // the sweeps of a day
						woken, err := h.Renewer.Sweep(ctx)
						if err != nil {
							t.Fatal(err)
						}
						wakes += woken
						for range 3 {
							o := h.Orchestrators[0]
							if dice.Float64() < share {
								o = canary
							}
							h.passRecords(o)
							time.Sleep(40 * time.Second)
						}
					}
					t.Logf("got %d wakes in a day, %d events of history", wakes, len(h.events(in)))
					if wakes == 0 || wakes > 50 {
						t.Errorf("got %d wakes in a day, want at least 1 and about two an hour", wakes)
					}
					if now := h.read(in); now.Status != provider.StatusBlocked {
						t.Errorf("the instance is %s, want blocked in both builds", now.Status)
					}
				})
		})
	}
}

// Each sweep reads only one page of blocked instances, and another build was the last to report each time.
func TestCanary_buildsReportInTurn_sweeperFindsAllBlocked(t *testing.T) {
	t.Parallel()
	const many = 1000
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.putBlocked(ctx, many)
		found := map[string]bool{}
		for n := range 12 {
			if err := h.Provider.PutBuild(ctx, provider.Build{ID: []string{"a", "b"}[n%2]}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			for page, err := range h.Provider.BlockedInstances(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range page {
					found[page[i].InstanceID] = true
				}
				break
			}
		}
		if len(found) != many {
			t.Errorf("got %d of %d blocked instances", len(found), many)
		}
	})
}

// Several sweepers may request a report. A process reports at most once a minute, because reports write a shared item.
func TestBuild_manyReportRequests_reportsOncePerMinute(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		reports := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isReport(c) {
				reports++
			}
			return next()
		})
		queryInstance := func() {
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: provider.ReportBuildInstanceID})
			h.turn(0)
		}
		queryInstance()
		if reports != 0 {
			t.Errorf("got %d reports right after the report at the start, want 0", reports)
		}
		time.Sleep(time.Minute)
		for range 30 {
			queryInstance()
			time.Sleep(time.Second)
		}
		if reports != 1 {
			t.Errorf("got %d reports in half a minute, want 1", reports)
		}
		if _, err := h.Provider.ReadInstance(ctx, provider.ReportBuildInstanceID); !errors.Is(err,
			provider.ErrNotFound) {
			t.Errorf("the request created an instance: error %v", err)
		}
	})
}

// An environment whose report at the start failed reports when it receives a request.
func TestBuild_reportFails_isRepeatedOnRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		refused := errors.New("refused")
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isReport(c) {
				return refused
			}
			return next()
		})
		o := must(dispatch.NewOrchestrator(sleeper(2, "add"), h.Provider,
			&dispatch.OrchestratorOptions{BuildID: "new"}))
		t.Cleanup(o.Close)
		if err := o.ReportBuild(ctx); err == nil {
			t.Fatal("the report at the start succeeded")
		}
		for range 2 { // the report of the first request also fails, but no message fails
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: provider.ReportBuildInstanceID})
			if failed := h.passRecords(o); len(failed) > 0 {
				t.Errorf("got %d failed messages, want none", len(failed))
			}
			h.interfere(nil)
		}
		if last := must(h.Provider.LatestBuild(ctx)); last.ID != "new" {
			t.Errorf("got %q as the last reporting build, want new", last.ID)
		}
	})
}

// isReport reports whether a call writes the report of a build.
func isReport(c simaws.Call) bool {
	put, is := c.Input.(*dynamodb.UpdateItemInput)
	if !is {
		return false
	}
	sk, _ := put.Key["sk"].(*ddbtypes.AttributeValueMemberS)
	return sk != nil && strings.HasPrefix(sk.Value, "b#")
}

// A turn crashes processes of two builds. After each build has reached the limit of crashes, a wake by the sweeper
// leads to one run per change of the build.
func TestBlocked_poisonInTwoBuilds_runsOncePerChangeOfBuild(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(ctx context.Context, h *hub) {
		in := h.blockedAsPoison()
		if n := f.ran.Swap(0); n != 13 {
			t.Fatalf("the turn ran %d times, want 13", n)
		}
		for n, want := range []int64{13, 1, 1, 1, 1, 1} {
			if err := h.Deploy(ctx, f.registry(), []string{"other", "test"}[n%2]); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				// The time ends between two deliveries, which are 90 s apart, because an interrupted delivery would not
				// crash.
				h.serveFor(121 * time.Second)
				if _, err := h.Renewer.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if ran := f.ran.Swap(0); ran != want || h.read(in).Status != provider.StatusBlocked {
				t.Errorf("change %d of the build: the turn ran %d times, want %d; the instance is %s",
					n, ran, want, h.read(in).Status)
			}
		}
	})
}

// Two builds report alternately for hours, and no other instance is blocked. If a build was the last to report within
// the hour, the sweeper starts no new round for it, even if sweeps find no instance to wake.
func TestCanary_buildsReportInTurn_noNewRoundStarts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.putBlocked(ctx, 1)
		found := 0
		for n := range 24 * 30 {
			if err := h.Provider.PutBuild(ctx, provider.Build{ID: []string{"a", "b"}[n%2]}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			for page, err := range h.Provider.BlockedInstances(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				found += len(page)
			}
		}
		if found < 24 || found > 48 {
			t.Errorf("the sweeper found the instance %d times in a day, want once or twice an hour", found)
		}
	})
}
