package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay"
)

// The bubble of synctest.Test fails the test if a goroutine remains, so no test here can leave a coroutine running.

func TestClose_deferredCalls_runUntilTheyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log []string
		x := instance(t, body(func(c *replay.Context) {
			defer func() { log = append(log, "outer") }()
			defer func() {
				log = append(log, fmt.Sprintf("recovered %v, replaying %v", recover(), c.IsReplaying()))
				activity(c, "compensation")
				log = append(log, "COMPENSATED")
			}()
			c.Await(activity(c, "a"))
			log = append(log, "AFTER")
		}))
		turn(t, x)
		if first, again := x.Close(), x.Close(); !first || !again {
			t.Error("the coroutine has not ended after Close")
		}
		if want := []string{"recovered <nil>, replaying true", "outer"}; !slices.Equal(log, want) {
			t.Errorf("got %q, want %q", log, want)
		}
	})
}

// If a deferred function makes a call that decides or waits, the coroutine ends again.
func TestClose_callInDeferredCall_endsTheCoroutine(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*replay.Context, *replay.Task){
		"schedule":                func(c *replay.Context, _ *replay.Task) { activity(c, "x") },
		"timer":                   func(c *replay.Context, _ *replay.Task) { c.CreateTimer(1, "") },
		"await":                   func(c *replay.Context, a *replay.Task) { c.Await(a) },
		"await of a settled task": func(c *replay.Context, _ *replay.Task) { c.Await(c.Settled("x", nil)) },
		"await any":               func(c *replay.Context, a *replay.Task) { c.AwaitAny([]*replay.Task{a}) },
		"cancel":                  func(_ *replay.Context, a *replay.Task) { a.Cancel("requested", "") },
		"unregistered":            func(c *replay.Context, _ *replay.Task) { c.Refuse("x") },
		"coroutine":               func(c *replay.Context, _ *replay.Task) { c.Go(func() {}) },
		"side effect":             func(c *replay.Context, _ *replay.Task) { c.SideEffect(replay.SideEffect{}) },
		"custom status":           func(c *replay.Context, _ *replay.Task) { c.SetCustomStatus(nil) },
		"event":                   func(c *replay.Context, _ *replay.Task) { c.WaitForExternalEvent("e") },
		"child": func(c *replay.Context, _ *replay.Task) {
			c.ScheduleSubOrchestration(replay.SubOrchestrationCall{})
		},
		"detached": func(c *replay.Context, _ *replay.Task) {
			c.StartDetached(replay.SubOrchestrationCall{})
		},
		"an await in a loop": func(c *replay.Context, a *replay.Task) { defer c.Await(a); c.Await(a) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			past := false
			x := instance(t, body(func(c *replay.Context) {
				a := activity(c, "a")
				defer func() { call(c, a); past = true }()
				c.Await(a)
			}))
			turn(t, x)
			if !x.Close() || past {
				t.Errorf("the deferred call continued after the call: %v", past)
			}
		})
	}
}

func TestClose_panicInDeferredCall_isLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		outer := false
		x := replay.New(body(func(c *replay.Context) {
			defer func() { outer = true }()
			defer func() { panic("a bug in a deferred call") }()
			c.Await(activity(c, "a"))
		}), replay.Options{InstanceID: "order-17", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := x.Replay([]history.Event{started}); err != nil {
			t.Fatal(err)
		}
		turn(t, x)
		if !x.Close() || !outer {
			t.Errorf("the outer deferred call ran: %v", outer)
		}
		if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "order-17") ||
			!strings.Contains(got, "a bug in a deferred call") {
			t.Errorf("got log %q", got)
		}
	})
}

func TestClose_suspendedInDeferredCallOfPanic_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var recovered any = "nothing"
		x := instance(t, body(func(c *replay.Context) {
			defer func() { recovered = recover() }()
			defer func() { c.Await(activity(c, "compensation")) }()
			panic("user")
		}))
		turn(t, x)
		if !x.Close() || recovered != nil {
			t.Errorf("got recovered value %v, want nil", recovered)
		}
	})
}

func TestPanic_deferredCallsAwait_thenContinues(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) {
		defer func() { c.Await(activity(c, "compensation")) }()
		panic("user")
	}))
	turn(t, x)
	events := turn(t, x, done(3))
	last := events[len(events)-1]
	if last.Kind != history.OrchestrationFailed || last.Error.Type != history.TypePanic ||
		!strings.HasPrefix(last.Error.Message, "user\n") {
		t.Errorf("%s: got %+v", last.String(), last.Error)
	}
}

func TestClose_blockingDeferredCall_returnsFalse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := instance(t, body(func(c *replay.Context) {
			defer func() { <-release }()
			c.Await(activity(c, "a"))
		}))
		turn(t, x)
		before := time.Now()
		if x.Close() || time.Since(before) != time.Second {
			t.Errorf("Close: took %v, want false after one second", time.Since(before))
		}
		close(release)
		if !x.Close() {
			t.Error("not closed after the deferred call was released")
		}
	})
}

func TestClose_neverRan_returnsTrue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if !instance(t, body(func(*replay.Context) { t.Error("the body ran") })).Close() {
			t.Error("not closed")
		}
	})
}

func TestGoexit_inTheBody_failsTheOrchestration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		code := body(func(c *replay.Context) {
			c.Await(activity(c, "a"))
			runtime.Goexit()
		})
		log := record(t, code, message(done(3)))
		last := log[len(log)-1]
		if last.Kind != history.OrchestrationFailed || last.Error.Type != history.TypeGoexit ||
			!strings.Contains(last.Error.Message, "runtime.Goexit") {
			t.Errorf("%s: got %+v", last.String(), last.Error)
		}
		x := replay.New(code, options)
		if err := x.Replay(log); err != nil || !x.Ended() {
			t.Errorf("replay: got ended %v, error %v", x.Ended(), err)
		}
		last.ID, last.Kind = last.ID+1, history.TurnStarted
		y := replay.New(code, options)
		as[*replay.NondeterminismError](t, y.Replay(append(log, last)))
		x.Close()
		y.Close()
	})
}

func TestPanic_failure_hasStack(t *testing.T) {
	t.Parallel()
	code := body(func(*replay.Context) { explode() })
	log := record(t, code)
	f := log[len(log)-1].Error
	if f == nil || f.Type != history.TypePanic || !strings.HasPrefix(f.Message, "boom\n") ||
		!strings.Contains(f.Message, "replay_test.explode") {
		t.Errorf("got %+v", f)
	}
	if err := replay.New(code, options).Replay(log); err != nil {
		t.Error(err)
	}
}

func explode() { panic("boom") }

func TestTurn_failed_codeCannotRecover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		swallowed := false
		x := instance(t, body(func(c *replay.Context) {
			defer func() { swallowed = recover() != nil }()
			c.Refuse("no activity is registered as x")
		}))
		_, err := x.Turn(replay.Turn{Now: epoch})
		e := as[*replay.UnregisteredError](t, err)
		if e.InstanceID != "order-17" || e.What != "no activity is registered as x" {
			t.Errorf("got %+v", e)
		}
		if _, err := x.Turn(replay.Turn{Now: epoch}); err == nil {
			t.Error("a turn succeeded after a failed turn")
		}
		if !x.Close() || swallowed {
			t.Errorf("the code recovered the failure of the turn: %v", swallowed)
		}
	})
}

func TestGo_coroutine_mayAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		code := body(func(c *replay.Context) {
			next, stop := iter.Pull(func(yield func(int) bool) {
				for i := range 2 {
					c.Await(activity(c, "pulled"))
					if !yield(i) {
						return
					}
				}
			})
			defer stop()
			for _, ok := next(); ok; _, ok = next() {
			}
		})
		log := record(t, code, message(done(3)), message(done(6)))
		if last := log[len(log)-1]; last.Kind != history.OrchestrationCompleted {
			t.Error(last.String())
		}
		x := instance(t, code) // suspended inside the iterator, where Close unwinds it
		turn(t, x)
		if !x.Close() {
			t.Error("not closed")
		}
	})
}

func TestForeignGoroutine_call_failsTheTurn(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*replay.Context, *replay.Task){
		"schedule": func(c *replay.Context, _ *replay.Task) { activity(c, "x") },
		"await":    func(c *replay.Context, a *replay.Task) { c.Await(a) },
		"cancel":   func(_ *replay.Context, a *replay.Task) { a.Cancel("requested", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			past := false
			x := instance(t, body(func(c *replay.Context) {
				a := activity(c, "a")
				var wg sync.WaitGroup
				wg.Go(func() {
					call(c, a)
					past = true
				})
				wg.Wait()
			}))
			_, err := x.Turn(replay.Turn{Now: epoch})
			e := as[*replay.ForeignGoroutineError](t, err)
			if past || !strings.Contains(e.Stack, "TestForeignGoroutine_call_failsTheTurn") {
				t.Errorf("the code continued after the call: %v, error %v", past, e)
			}
		})
	}
}

func TestForeignGoroutine_callWhileSuspended_failsTheTurn(t *testing.T) {
	t.Parallel()
	var context *replay.Context
	x := instance(t, body(func(c *replay.Context) {
		context = c
		c.Await(activity(c, "a"))
	}))
	turn(t, x)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		context.CreateTimer(time.Second, "")
		t.Error("a foreign goroutine continued after its call")
	}()
	<-ended
	_, err := x.Turn(replay.Turn{Now: epoch, Inputs: [][]history.Event{{done(3)}}})
	as[*replay.ForeignGoroutineError](t, err)
}

func TestForeignGoroutine_bodyWaitsForIt_isReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		response := make(chan struct{})
		x := instance(t, body(func(c *replay.Context) {
			a := activity(c, "a")
			go func() {
				c.Await(a)
				close(response)
			}()
			<-response
		}))
		_, err := x.Turn(replay.Turn{Now: epoch})
		as[*replay.ForeignGoroutineError](t, err)
		close(response)
		synctest.Wait()
	})
}

func TestTurnLimit_blockedBody_isReportedWithStack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		unwound, past := false, false
		code := body(func(c *replay.Context) {
			defer func() { unwound = true }()
			waitOutside(release)
			activity(c, "late")
			past = true
		})
		x := replay.New(code, replay.Options{InstanceID: "order-17", ExecutionID: "blocked", TurnTimeout: time.Minute})
		if err := x.Replay([]history.Event{started}); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		_, err := x.Turn(replay.Turn{Now: epoch})
		e := as[*replay.BlockedOutsideError](t, err)
		if time.Since(before) != time.Minute || e.Limit != time.Minute ||
			!strings.Contains(e.Stack, "replay_test.waitOutside") {
			t.Errorf("after %v: got %v", time.Since(before), e)
		}
		if x.Close() || time.Since(before) != time.Minute {
			t.Error("Close waited for code that blocked the turn")
		}
		close(release)
		synctest.Wait()
		if !unwound || past || !x.Close() {
			t.Errorf("after the release: got cleanup %v, continued %v", unwound, past)
		}
	})
}

// A panic after the turn was abandoned must not end the process, which runs other instances.
func TestTurnLimit_abandonedBodyPanics_isIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := instance(t, body(func(*replay.Context) {
			waitOutside(release)
			panic("too late")
		}))
		_, err := x.Turn(replay.Turn{Now: epoch})
		as[*replay.BlockedOutsideError](t, err)
		close(release)
		synctest.Wait()
		if !x.Close() {
			t.Error("not closed")
		}
	})
}

func waitOutside(c chan struct{}) { <-c }

// A suspended coroutine does not block the turn, so its stack is not in the error.
func TestTurnLimit_parkedCoroutines_areNotInTheStack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := replay.New(body(func(c *replay.Context) {
			c.Go(func() { waitParked(c) })
			c.Go(func() { waitOutside(release) })
			waitParked(c)
		}), replay.Options{InstanceID: "order-17", ExecutionID: "parked"})
		if err := x.Replay([]history.Event{started}); err != nil {
			t.Fatal(err)
		}

		_, err := x.Turn(replay.Turn{Now: epoch})
		stack := as[*replay.BlockedOutsideError](t, err).Stack
		if !strings.Contains(stack, "replay_test.waitOutside") || strings.Contains(stack, "replay_test.waitParked") {
			t.Error(stack)
		}

		close(release)
		synctest.Wait()
		x.Close()
	})
}

//go:noinline
func waitParked(c *replay.Context) { c.Await(activity(c, "a")) }

func TestTurnLimit_default_isTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := instance(t, body(func(*replay.Context) { <-release }))
		_, err := x.Turn(replay.Turn{Now: epoch})
		if e := as[*replay.BlockedOutsideError](t, err); e.Limit != 10*time.Second {
			t.Error(e.Limit)
		}
		close(release)
		synctest.Wait()
	})
}

func TestAwait_taskOfOtherInstance_panics(t *testing.T) {
	t.Parallel()
	var other *replay.Task
	turn(t, instance(t, body(func(c *replay.Context) { other = activity(c, "a") })))
	log := record(t, body(func(c *replay.Context) { c.Await(other) }))
	if f := log[len(log)-1].Error; f == nil || !strings.Contains(f.Message, "a future of instance") {
		t.Errorf("got %+v", f)
	}
}

func TestEnd_bodyFails_recordsFailure(t *testing.T) {
	t.Parallel()
	want := &history.Failure{Type: "DeclinedError", Message: "no"}
	log := record(t, replay.Orchestration{Name: "o", Body: func(*replay.Context, json.RawMessage) replay.Ending {
		return replay.Ending{Kind: history.OrchestrationFailed, Error: want}
	}})
	if last := log[len(log)-1]; last.Kind != history.OrchestrationFailed || last.Error != want {
		t.Errorf("%s: got %+v", last.String(), last.Error)
	}
}

// If a goroutine that the body started makes a call immediately, the turn fails although the body has ended, and
// nothing is committed. A later call is logged.
func TestForeignGoroutine_callAfterTheBody_failsTheTurn(t *testing.T) {
	t.Parallel()
	const turns = 200
	voided := 0
	for range turns {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			opts := options
			opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			x := replay.New(body(func(c *replay.Context) { go activity(c, "a") }), opts)
			if err := x.Replay([]history.Event{started}); err != nil {
				t.Fatal(err)
			}
			_, err := x.Turn(replay.Turn{Now: epoch, Version: "1", BuildID: "b"})
			x.Close()
			synctest.Wait()
			if err != nil {
				as[*replay.ForeignGoroutineError](t, err)
				voided++
			} else if !strings.Contains(log.String(), logevent.OrchestrationForeignGoroutine) {
				t.Error("neither an error nor a log line")
			}
		})
	}
	t.Logf("%d of %d turns failed", voided, turns)
	if voided < turns/2 {
		t.Errorf("only %d of %d turns failed", voided, turns)
	}
}

// A call after the turn was committed and the instance closed has no effect and is logged.
func TestForeignGoroutine_callAfterTheTurn_isLogged(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"before the instance is dropped": false, "after it": true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			past, opts := false, options
			opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			x := replay.New(body(func(c *replay.Context) {
				go func() {
					time.Sleep(time.Minute)
					activity(c, "a")
					past = true
				}()
			}), opts)
			if err := x.Replay([]history.Event{started}); err != nil {
				t.Fatal(err)
			}
			wantKinds(t, turn(t, x)[1:], "OrchestrationCompleted #3")
			if closed {
				x.Close()
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			x.Close()
			for _, want := range []string{
				"level=ERROR", "instance=order-17", "execution=01JEXECUTION",
				"event=" + logevent.OrchestrationForeignGoroutine, "TestForeignGoroutine_callAfterTheTurn_isLogged",
			} {
				if past || !strings.Contains(log.String(), want) {
					t.Errorf("%s: continued after the call: %v, %s is not in the log: %q",
						name, past, want, log.String())
				}
			}
		})
	}
}
