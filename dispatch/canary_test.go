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

// Two builds beside one another, in environments that are warm. The interleavings that could hurt:
//
//   - The canary reports at its cold start, blocks instances, and is turned back. No environment of the build before it starts any
//     more: the watch would take the canary for the deployed build for ever.
//   - The canary begins, an environment of the old build starts cold after it, parks what the new build alone has, and all is
//     shifted: the same the other way round.
//   - Both stay, and are asked in turn. Were each answer that differs from the last a new deployment, every blocked instance would
//     be woken at every look: a message, a turn, and for what neither can run a segment of history each time.
//   - The build that the watch looks for changes within a round: what the other build has blocked anew lies behind the place that
//     the round has come to, and would be woken at each change.
//   - A round that began anew at each change would not come to its end: what is last in the index would never be woken.
//   - Many ask at once, or a message is delivered twice: a report is a write of an item that all environments share.

// blockIn has o take the messages of an instance until it is blocked.
func (h *hub) blockIn(o *dispatch.Orchestrator, in provider.Instance) {
	h.t.Helper()
	for range 3 {
		h.give(o)
		time.Sleep(time.Minute)
	}
	if now := h.read(in); now.Status != provider.StatusBlocked {
		h.t.Fatalf("the instance is %s", now.Status)
	}
}

// wantUnblocked has the watch look every two minutes, and o take what it sends, until the instance is not blocked.
func (h *hub) wantUnblocked(o *dispatch.Orchestrator, in provider.Instance, within time.Duration) {
	h.t.Helper()
	for from := time.Now(); h.read(in).Status == provider.StatusBlocked; time.Sleep(2 * time.Minute) {
		if time.Since(from) > within {
			h.t.Fatalf("it is blocked %v after, and every environment could run it", time.Since(from))
		}
		if _, err := h.Timekeeper.Sweep(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		h.give(o)
	}
}

func TestWhatATurnedBackCanaryBlockedGoesOnInWarmEnvironments(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		time.Sleep(time.Minute)
		canary := h.orchestrator(sleeper(2, "plus"), "new")
		h.raise(in, "e", 1)
		h.blockIn(canary, in)
		h.wantUnblocked(h.Orchestrators[0], in, 5*time.Minute) // from here on the alias leads to the old build alone
	})
}

func TestWhatTheOldBuildBlockedGoesOnInWarmEnvironmentsOfTheNew(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: versions("1")}, func(ctx context.Context, h *hub) {
		canary := h.orchestrator(sleeper(1, "add"), "new")
		in := h.start("sleeper", 0)
		time.Sleep(time.Minute)
		old := h.orchestrator(versions("1"), "test") // starts cold, while the canary is under way
		h.blockIn(old, in)
		h.wantUnblocked(canary, in, 5*time.Minute)
	})
}

// The canary has been beside the old build for long, and the watch has seen both: what it blocked goes on within an hour.
func TestWhatALongCanaryBlockedGoesOnWithinAnHour(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		canary := h.orchestrator(sleeper(2, "plus"), "new")
		h.raise(in, "e", 1)
		h.blockIn(canary, in)
		both := []*dispatch.Orchestrator{canary, canary, canary, h.Orchestrators[0]}
		for n := range 100 {
			woken, err := h.Timekeeper.Sweep(ctx)
			if err != nil {
				t.Fatal(err)
			}
			o := both[n%len(both)]
			if woken > 0 {
				o = canary // which has luck with all of the instance's wakes, while both are asked for reports
			}
			h.give(o)
			time.Sleep(2 * time.Minute)
		}
		h.wantUnblocked(h.Orchestrators[0], in, time.Hour)
	})
}

func TestTwoBuildsThatBothStayWakeABlockedInstanceRarely(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]float64{"a tenth": 0.1, "half": 0.5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a, b atomic.Int64
			inBubble(t, simhub.Options{Registry: entered(&a, awaits(1, "plus"))}, func(ctx context.Context, h *hub) {
				in := h.block(entered(new(atomic.Int64), awaits(1, "add")))
				canary := h.orchestrator(entered(&b, awaits(1, "times")), "new")
				dice := rand.New(rand.NewPCG(1, 2))
				wakes := 0
				for range 24 * 30 { // looks of a day
					woken, err := h.Timekeeper.Sweep(ctx)
					if err != nil {
						t.Fatal(err)
					}
					wakes += woken
					for range 3 {
						o := h.Orchestrators[0]
						if dice.Float64() < share {
							o = canary
						}
						h.give(o)
						time.Sleep(40 * time.Second)
					}
				}
				t.Logf("%d wakes in a day, %d events of history", wakes, len(h.events(in)))
				if wakes == 0 || wakes > 50 {
					t.Errorf("%d wakes in a day, want some, and two or so an hour", wakes)
				}
				if now := h.read(in); now.Status != provider.StatusBlocked {
					t.Errorf("it is %s, and blocked in both", now.Status)
				}
			})
		})
	}
}

// A look that has no time for more than a page of them, and another build that was the last to report at each.
func TestAllThatIsBlockedIsFoundWhileTwoBuildsReportInTurn(t *testing.T) {
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
			t.Errorf("%d of %d were found", len(found), many)
		}
	})
}

// A report is asked for by whoever finds that it needs one, and each request is one more write of the same item.
func TestABuildReportsOnceAMinuteHoweverManyAsk(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		reports := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isReport(c) {
				reports++
			}
			return next()
		})
		ask := func() {
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: provider.ReportBuildInstanceID})
			h.turn(0)
		}
		ask()
		if reports != 0 {
			t.Errorf("%d reports at once after that of the start", reports)
		}
		time.Sleep(time.Minute)
		for range 30 {
			ask()
			time.Sleep(time.Second)
		}
		if reports != 1 {
			t.Errorf("%d reports in half a minute, want 1", reports)
		}
		if _, err := h.Provider.ReadInstance(ctx, provider.ReportBuildInstanceID); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("what asks for a report is an instance: %v", err)
		}
	})
}

// An environment that could not report when it started does when it is asked.
func TestAReportThatFailedIsMadeWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		refused := errors.New("refused")
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isReport(c) {
				return refused
			}
			return next()
		})
		o := must(dispatch.NewOrchestrator(sleeper(2, "add"), h.Provider, &dispatch.OrchestratorOptions{BuildID: "new"}))
		t.Cleanup(o.Close)
		if err := o.ReportBuild(ctx); err == nil {
			t.Fatal("it has reported")
		}
		for range 2 { // the first is refused too, which fails no message
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: provider.ReportBuildInstanceID})
			if failed := h.give(o); len(failed) > 0 {
				t.Errorf("%d messages failed", len(failed))
			}
			h.interfere(nil)
		}
		if last := must(h.Provider.LatestBuild(ctx)); last.ID != "new" {
			t.Errorf("the build that has reported last is %q", last.ID)
		}
	})
}

// isReport: a build is written.
func isReport(c simaws.Call) bool {
	put, is := c.Input.(*dynamodb.UpdateItemInput)
	if !is {
		return false
	}
	sk, _ := put.Key["sk"].(*ddbtypes.AttributeValueMemberS)
	return sk != nil && strings.HasPrefix(sk.Value, "b#")
}

// Two builds run beside one another, and a turn takes down the process of either. Each has killed enough processes to know that: from then on what
// the watch wakes has one try in each.
func TestWhatIsPoisonInTwoBuildsHasOneTryInEach(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(ctx context.Context, h *hub) {
		in := h.blockedAsPoison()
		if n := f.ran.Swap(0); n != 13 {
			t.Fatalf("it ran %d times", n)
		}
		for n, want := range []int64{13, 1, 1, 1, 1, 1} {
			if err := h.Deploy(ctx, f.registry(), []string{"other", "test"}[n%2]); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				h.serveFor(121 * time.Second) // no delivery, of which there is one in 90, is at its end: it would be cut, and live
				if _, err := h.Timekeeper.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if ran := f.ran.Swap(0); ran != want || h.read(in).Status != provider.StatusBlocked {
				t.Errorf("change %d of the build: it ran %d times, want %d; it is %s", n, ran, want, h.read(in).Status)
			}
		}
	})
}

// Nothing new is blocked, and for hours two builds report in turn: no round begins for a build that was the last to report within the hour, though no
// look has found anything to wake.
func TestBuildsThatReportInTurnAreKnownWhileNothingIsFound(t *testing.T) {
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
			t.Errorf("it is found %d times in a day, want once or twice an hour", found)
		}
	})
}
