package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// These tests cover races of a turn that is committed with the next turn, and of deferred statuses (R20 in
// docs/internals/rules.md).

// inlineThenQueued calls an inline activity and then a queued activity. One segment contains both turns.
func inlineThenQueued(ctx *perdure.OrchestrationContext, n int) (int, error) {
	v, err := callWork(ctx, n).Await(ctx)
	if err != nil {
		return 0, err
	}
	return perdure.CallActivity(ctx, inc, v).Await(ctx)
}

func TestR20_nextTurnHasNoInlineActivity_isInTheSameCommit(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	withInlineWork(t, w, simhub.Options{}, inlineThenQueued, func(_ context.Context, h *hub) {
		in := h.start("works", 1)
		h.turn(0)
		wantHistory(t, h.events(in), "OrchestrationStarted", "TurnStarted", "ActivityScheduled", "ActivityCompleted",
			"TurnStarted", "ActivityScheduled")
		if h.item("x#"+in.ExecutionID, "h#0000000002") != nil {
			t.Error("got two segments, want one")
		}
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s %s, want 3", end.String(), end.Output)
		}
		w.wantRuns(t, 1, 0)
		h.checkIdle()
	})
}

// The process crashes before or after a commit with two turns. The commit is atomic, and the outputs of both turns are
// sent after it.
func TestR20_crashAroundACommitOfTwoTurns_losesNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		w := &inlineWork{}
		crash, crashed := crashOnce(after, func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
		withInlineWork(t, w, simhub.Options{Intercept: crash}, inlineThenQueued, func(_ context.Context, h *hub) {
			if end := h.finish(h.start("works", 1)); string(end.Output) != "3" || !crashed.Load() {
				t.Errorf("after=%v: ended with %s %s, want 3 after a crash", after, end.String(), end.Output)
			}
			if after {
				w.wantRuns(t, 1, 0)
			} else {
				w.wantRuns(t, 2, 1)
			}
			h.checkIdle()
		})
	}
}

// Another process has committed a turn. The session discards the code that ran ahead, together with the inline outcome.
func TestR20_conflictAfterTheCodeRanAhead_discardsIt(t *testing.T) {
	t.Parallel()
	for _, steps := range []bool{false, true} { // the next turn has or does not have another inline activity
		w := &inlineWork{}
		body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			first, second := callWork(ctx, 1500), callWork(ctx, 1) // the same calls as in the other process
			v, err := first.Await(ctx)
			if err != nil {
				return 0, err
			}
			more, err := second.Await(ctx)
			if err != nil {
				return 0, err
			}
			if steps {
				return callWork(ctx, v+more).Await(ctx)
			}
			return v + more, nil
		}
		withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
			in := h.start("works", 0)
			conflicts := 0
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				if isCommit(c, "h#0000000001") && conflicts == 0 {
					conflicts++
					h.meanwhile(in)
				}
				return next()
			})
			want := "1503"
			if steps {
				want = "1504"
			}
			if end := h.finish(in); string(end.Output) != want || conflicts != 1 {
				t.Errorf("steps=%v: ended with %s %s, want %s", steps, end.String(), end.Output, want)
			}
			h.checkIdle()
		})
	}
}

// SQS rejects an output of a turn while the code has already continued to an inline activity. The code receives the
// failure.
func TestR20_outputIsRejectedWhileTheCodeIsAhead_codeReceivesIt(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		lost := perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere")).Call(ctx, 1)
		for range n {
			if _, err := callWork(ctx, 1).Await(ctx); err != nil {
				return 0, err
			}
		}
		if _, err := lost.Await(ctx); err == nil {
			return 0, errors.New("an activity on a missing queue completed")
		}
		return n, nil
	}
	for _, n := range []int{1, 2, 5} {
		withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
			if end := h.finish(h.start("works", n)); string(end.Output) != fmt.Sprint(n) {
				t.Errorf("%d inline activities: ended with %s %s %v", n, end.String(), end.Output, end.Error)
			}
			h.checkIdle()
		})
	}
}

// An outcome and the decisions of the next turn exceed a commit. They are committed separately. If the outcome exceeds
// the commit of the decisions before it, the activity is sent to its queue.
func TestR20_outcomeAndDecisionsExceedACommit_areCommittedSeparately(t *testing.T) {
	t.Parallel()
	r, ran := perdure.NewRegistry(), atomic.Int64{}
	perdure.AddActivity(r, "large", func(_ context.Context, n int) (string, error) {
		ran.Add(1)
		return letters(n), nil
	}, perdure.Inline())
	perdure.AddActivity(r, "length", func(_ context.Context, s string) (int, error) { return len(s), nil })
	perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, sides [2]int) (int, error) {
		var lengths []*perdure.Future[int]
		call := func(n int) {
			for i := range n {
				lengths = append(lengths, perdure.CallActivityByName[int](ctx, "length", letters(i)))
			}
		}
		step := perdure.CallActivityByName[string](ctx, "large", 99)
		call(sides[0])
		if _, err := step.Await(ctx); err != nil {
			return 0, err
		}
		call(sides[1])
		return sumOf(ctx, lengths)
	})
	for _, sides := range [][2]int{{3, 5}, {10, 5}, {5, 10}, {10, 12}, {15, 1}, {15, 15}, {16, 0}, {16, 3}} {
		ran.Store(0)
		want := 1 + int64(sides[0]/16) // an outcome that does not fit costs a second run
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			end := h.finish(h.start("works", sides))
			if total := fmt.Sprint((sides[0] + sides[1]) * 190_000); string(end.Output) != total || ran.Load() != want {
				t.Errorf("%v: ended with %s %s %v after %d runs, want %s after %d",
					sides, end.String(), end.Output, end.Error, ran.Load(), total, want)
			}
			h.checkIdle()
		})
	}
}

// A pause request follows the trigger of a turn. The code does not continue with the inline outcome before the pause.
func TestR20_pauseFollowsTheTrigger_isBeforeTheOutcome(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	withInlineWork(t, w, simhub.Options{}, inlineThenQueued, func(ctx context.Context, h *hub) {
		in := h.start("works", 1)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, pauseMessage(in, "1", "ann")))
		h.turn(0)
		wantHistory(t, h.events(in), "OrchestrationStarted", "TurnStarted", "ActivityScheduled", "ActivityCompleted",
			"ExecutionSuspended")
		must(0, h.Provider.EnqueueForOrchestrator(ctx, resumeMessage(in, "2", "ann")))
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s %s, want 3", end.String(), end.Output)
		}
		w.wantRuns(t, 1, 0)
		h.checkIdle()
	})
}

// If code blocks after it has received an inline outcome, the block is detected after the outcome is in history. The
// activity does not run again.
func TestR20_codeBlocksAfterAnOutcome_outcomeIsInHistory(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		v, err := callWork(ctx, n).Await(ctx)
		time.Sleep(time.Hour)
		return v, err
	}
	withInlineWork(t, w, simhub.Options{TurnTimeout: 300 * time.Millisecond}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 1)
		h.serveFor(20 * time.Minute)
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("the instance is %s, want blocked", now.Status)
		}
		w.wantRuns(t, 1, 0)
		if kinds := h.events(in); kinds[3].Kind != history.ActivityCompleted {
			t.Errorf("got %s, want the inline outcome", kinds[3].String())
		}
		time.Sleep(5 * time.Hour) // the orchestrations return
	})
}

// statusWritten returns the status that a call writes to an existing instance.
func statusWritten(c simaws.Call) (string, bool) {
	u, ok := c.Input.(*dynamodb.UpdateItemInput)
	if !ok || text(u.Key, "sk") != "i" {
		return "", false
	}
	return text(u.ExpressionAttributeValues, ":status"), true
}

// statuses returns the statuses that calls wrote to instances, in order.
func (h *hub) statuses() (all []string) {
	for _, c := range h.made() {
		if u, ok := statusWritten(c); ok {
			all = append(all, u)
		}
	}
	return all
}

// The status of an instance that ends in its first invocation is written at the start and at the end. An instance that
// runs longer, or waits, shows Running in time.
func TestR20_status_isDeferredToALaterTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		each, rests time.Duration
		want        []string
	}{
		"short": {time.Millisecond, 0, []string{"Completed"}},
		"long":  {300 * time.Millisecond, 0, []string{"Running", "Completed"}},
		"waits": {time.Millisecond, time.Hour, []string{"Running", "Completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
				return n + 1, sleepFor(ctx, c.each)
			}}
			body := func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
				for range n {
					if v, err = callWork(ctx, v).Await(ctx); err != nil {
						return 0, err
					}
				}
				if c.rests > 0 {
					err = perdure.Sleep(ctx, c.rests)
				}
				return v, err
			}
			withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
				began, shown := time.Now(), time.Duration(0)
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if status, ok := statusWritten(c); ok && status == "Running" {
						shown = time.Since(began)
					}
					return next()
				})
				if end := h.finish(h.start("works", 10)); string(end.Output) != "10" {
					t.Errorf("ended with %s %s, want 10", end.String(), end.Output)
				}
				if got := h.statuses(); !slices.Equal(got, c.want) {
					t.Errorf("got written statuses %q, want %q", got, c.want)
				}
				if shown > 1500*time.Millisecond {
					t.Errorf("the status Running was written after %v, want at most 1.5s", shown)
				}
				h.checkIdle()
			})
		})
	}
}

// A session defers a status to a later turn, and its process crashes. The redispatch writes the status.
func TestR20_crashWithADeferredStatus_redispatchWritesIt(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if v, err = callWork(ctx, v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
	}
	withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 5)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isCommit(c, "h#0000000002") {
				return simhub.ErrCrashed
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 || h.read(in).Status != provider.StatusPending {
			t.Errorf("got %d failed messages, the instance is %s; want 1, pending", len(failed), h.read(in).Status)
		}
		h.interfere(nil)
		h.serveFor(time.Hour)
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("the instance is %s, want running", now.Status)
		}
	})
}

// A chain that continues in another invocation shows the status Running.
func TestR20_chainContinuesInAnotherInvocation_showsItsStatus(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	withInlineWork(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
		in := h.start("works", 2500)
		h.turn(0) // a thousand turns without delay
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("the instance is %s, want running", now.Status)
		}
		if end := h.finish(in); string(end.Output) != "2500" {
			t.Errorf("ended with %s %s, want 2500", end.String(), end.Output)
		}
		w.wantRuns(t, 2500, 0)
		h.checkIdle()
	})
}
