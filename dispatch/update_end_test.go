package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A paused instance parks an update without validation. The error of its caller reports that the instance is paused.
// The update is validated after the resume.
func TestR27_pausedInstance_processesUpdateAfterResume(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{Environments: 2}, changing{Events: 1},
		func(ctx context.Context, h *hub, in provider.Instance) {
			h.pause(in, "p1")
			h.turn(0)
			h.update(in, "u1", change{Refuse: "b"})
			h.update(in, "u2", change{Say: "a"})
			h.turn(0)
			time.Sleep(6 * time.Minute) // SQS has forgotten the deduplication ID of the first copy
			h.update(in, "u2", change{Say: "a copy"})
			h.turn(0)
			h.wantNoResult(in, "u1")
			h.wantPendingError(ctx, in, provider.StatusPaused)
			h.raise(in, "e0", 0)
			h.turn(0)
			h.wantPaused(in)
			h.resume(in, "r1")
			h.serveFor(time.Minute)
			h.wantUpdated(in, "u1", provider.UpdateRejected, "b after 0")
			h.wantUpdated(in, "u2", provider.UpdateCompleted, `"a"`)
			h.wantUpdated(
				in, "requested", provider.UpdateAborted, history.TerminalReason(history.OrchestrationCompleted))
			h.checkIdle()
		})
}

// wantPendingError fails the test unless a caller of an update receives a timeout with the status of the instance.
func (h *hub) wantPendingError(ctx context.Context, in provider.Instance, want provider.RuntimeStatus) {
	h.t.Helper()
	short, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := client.New(h.Provider).Update(short, in.InstanceID, "change", change{Say: "c", Wait: "never"},
			client.WithUpdateID("requested"))
		e, updateErr := errors.AsType[*client.UpdateError](err)
		if !updateErr || e.Code != client.UpdatePending || e.Status != want || e.UpdateID != "requested" ||
			!errors.Is(err, context.DeadlineExceeded) {
			h.t.Errorf("got error %v, want pending with status %s", err, want)
		}
	}()
	h.serveFor(20 * time.Second)
	<-done
}

// A blocked instance parks an update for the fixed build.
func TestR27_blockedInstance_processesUpdateInFixedBuild(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 2}, func(ctx context.Context, h *hub, in provider.Instance) {
		broken := registry()
		perdure.AddOrchestration(broken, "changes", func(
			ctx *perdure.OrchestrationContext, _ changing,
		) (string, error) {
			_, err := perdure.CreateTimer(ctx, time.Hour).Await(ctx)
			return "", err
		})
		if err := h.Deploy(ctx, broken, "broken"); err != nil {
			t.Fatal(err)
		}
		h.update(in, "u1", change{Say: "a"})
		h.serveFor(30 * time.Minute)
		h.wantStatus(in, provider.StatusBlocked)
		h.wantNoResult(in, "u1")
		h.wantPendingError(ctx, in, provider.StatusBlocked)
		if err := h.Deploy(ctx, addChanging(registry()), "fixed"); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			h.watch()
			h.serveFor(10 * time.Minute)
		}
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
		h.raise(in, "e1", 1)
		h.raise(in, "e2", 2)
		h.finish(in)
		h.checkIdle()
	})
}

// Code without the handler of an accepted update differs from its history. The instance is blocked, and its diagnosis
// shows both sides.
func TestR27_handlerIsRemoved_blocksInstance(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(ctx context.Context, h *hub, in provider.Instance) {
		h.update(in, "u1", change{Say: "a", Wait: "go"})
		h.turn(0)
		without := registry()
		perdure.AddOrchestration(without, "changes", func(
			ctx *perdure.OrchestrationContext, _ changing,
		) (string, error) {
			return perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx)
		})
		if err := h.Deploy(ctx, without, "without"); err != nil {
			t.Fatal(err)
		}
		h.raiseGo(in)
		h.serveFor(30 * time.Minute)
		now := h.read(in)
		if now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeNondeterminism ||
			!strings.Contains(now.Diagnosis.Expected, `UpdateAccepted "change"`) ||
			!strings.Contains(now.Diagnosis.Got, "no handler") {
			t.Errorf("got status %s, diagnosis %+v, want Blocked as nondeterministic", now.Status, now.Diagnosis)
		}
	})
}

// Any end of an execution aborts the handlers that have not returned, and each caller receives the kind of end. A
// handler that returns before the end has its usual result.
func TestR27_executionEnds_unfinishedUpdatesAreAborted(t *testing.T) {
	t.Parallel()
	waits := change{Say: "a", Wait: "go"}
	for name, c := range map[string]struct {
		changing changing
		then     func(h *hub, in provider.Instance)
		outcome  provider.UpdateOutcome
		mentions string
	}{
		"ends while the handler waits": {changing{Events: 1}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.turns()
			h.raise(in, "e1", 1)
		}, provider.UpdateAborted, history.TerminalReason(history.OrchestrationCompleted)},
		"ends in the turn that accepts": {changing{Events: 1}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.raise(in, "e1", 1)
		}, provider.UpdateAborted, history.TerminalReason(history.OrchestrationCompleted)},
		"handler returns in the turn of the end": {changing{Events: 1}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.turns()
			h.raiseGo(in)
			h.raise(in, "e1", 1)
		}, provider.UpdateCompleted, `"a a!"`},
		"continues as new": {changing{Events: 2, Continues: true}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.raise(in, "e1", 1)
			h.turns()
			h.raise(in, "e2", 2)
		}, provider.UpdateAborted, history.TerminalReason(history.OrchestrationContinuedAsNew)},
		"continues as new after the handler": {changing{
			Events: 2, Continues: true, Done: true,
		}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.raise(in, "e1", 1)
			h.turns()
			h.raiseGo(in)
			h.turns()
			h.raise(in, "e2", 2)
		}, provider.UpdateCompleted, `"a 1 a!"`},
		"terminated": {changing{Events: 1}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.turns()
			h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		}, provider.UpdateAborted, history.TerminalReason(history.OrchestrationTerminated)},
		"terminated while paused": {changing{Events: 1}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.turns()
			h.pause(in, "p1")
			h.turns()
			h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		}, provider.UpdateAborted, history.TerminalReason(history.OrchestrationTerminated)},
		"cancelled": {changing{Events: 1, Done: true}, func(h *hub, in provider.Instance) {
			h.update(in, "u1", waits)
			h.turns()
			h.send(provider.Message{
				Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested", RequestedBy: "client",
			})
		}, provider.UpdateAborted, history.TerminalReason(history.OrchestrationCancelled)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes(t, simhub.Options{Environments: 2}, c.changing,
				func(_ context.Context, h *hub, in provider.Instance) {
					c.then(h, in)
					h.finish(in)
					h.wantUpdated(in, "u1", c.outcome, c.mentions)
					h.wantReplays(addChanging(registry()), in)
					h.checkIdle()
				})
		})
	}
}

// An end without code, for example because of FailOnNondeterminism, also aborts open updates.
func TestR27_endWithoutCode_abortsUpdates(t *testing.T) {
	t.Parallel()
	failing := func(name string) *perdure.Registry {
		r := registry()
		perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
			if err := handleChanges(ctx, &[]string{}); err != nil {
				return "", err
			}
			return perdure.WaitForExternalEvent[string](ctx, name).Await(ctx)
		}, perdure.FailOnNondeterminism())
		return r
	}
	changes(t, simhub.Options{Registry: failing("add")}, changing{},
		func(ctx context.Context, h *hub, in provider.Instance) {
			h.update(in, "u1", change{Say: "a", Wait: "go"})
			h.turn(0)
			if err := h.Deploy(ctx, failing("other"), "other"); err != nil {
				t.Fatal(err)
			}
			h.raiseGo(in)
			if end := h.finish(in); end.Kind != history.OrchestrationFailed ||
				end.Error.Type != history.TypeNondeterminism {
				t.Errorf("ended with %s, want failed by nondeterminism", end.String())
			}
			h.wantUpdated(in, "u1", provider.UpdateAborted, history.TerminalReason(history.OrchestrationFailed))
			h.checkIdle()
		})
}

// An instance with an unreadable history is terminated. Its status shows the end, and the caller receives ErrEnded.
func TestR27_damagedInstanceIsTerminated_callerReceivesErrEnded(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{CacheBytes: -1}, changing{Events: 1},
		func(ctx context.Context, h *hub, in provider.Instance) {
			h.update(in, "u1", change{Say: "a", Wait: "go"})
			h.turn(0)
			h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
			h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
			h.serveFor(time.Hour)
			h.wantStatus(in, provider.StatusTerminated)
			if _, err := client.New(h.Provider).Update(ctx, in.InstanceID, "change", change{},
				client.WithUpdateID("u1")); !errors.Is(err, client.ErrEnded) {
				t.Errorf("got error %v, want ErrEnded", err)
			}
		})
}

// An update after the event that makes the code continue as new belongs to the next execution.
func TestR27_updateAfterContinueAsNew_reachesNextExecution(t *testing.T) {
	t.Parallel()
	for _, parked := range []bool{false, true} {
		t.Run(fmt.Sprintf("parked=%t", parked), func(t *testing.T) {
			t.Parallel()
			changes(t, simhub.Options{Environments: 2}, changing{Events: 3, Continues: true},
				func(_ context.Context, h *hub, in provider.Instance) {
					if parked {
						h.pause(in, "p1")
						h.turn(0)
					}
					h.raise(in, "e1", 1)
					for n := range 3 {
						h.update(in, fmt.Sprint("u", n), change{Say: static(int64(n), 100<<10)})
					}
					if parked {
						h.turns()
						h.resume(in, "r1")
					}
					h.serveFor(time.Minute)
					for n := range 3 {
						h.wantUpdated(in, fmt.Sprint("u", n), provider.UpdateCompleted, "")
						a := must(h.Provider.ReadUpdate(t.Context(), in.InstanceID, fmt.Sprint("u", n)))
						if now := h.read(in); a.ExecutionID != now.ExecutionID || now.ExecutionNumber != 2 {
							t.Errorf("update %d: accepted by execution %s, want the second execution %s",
								n, a.ExecutionID, now.ExecutionID)
						}
					}
				})
		})
	}
}

// Updates that arrived before the first turn, and for which the code did not wait, are carried over to the next
// execution, including large inputs.
func TestR27_continueAsNew_carriesOverUnprocessedUpdates(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 60 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			r := registry()
			perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, c changing) (string, error) {
				if c.Continues {
					return perdure.ContinueAsNew[string](ctx, changing{Events: 1})
				}
				return changesWhile(ctx, c)
			})
			inBubble(t, simhub.Options{Environments: 2, Registry: r}, func(ctx context.Context, h *hub) {
				in := must(h.Provider.StartOrchestration(ctx, provider.Start{
					InstanceID: "i-1", Name: "changes", StartID: "start-1",
					Input:   encoded(t, changing{Continues: true}),
					StartAt: time.Now().Add(time.Hour),
				}))
				longText := "a" + static(1, size)
				h.update(in, "u1", change{Say: longText})
				h.update(in, "u2", change{Refuse: "b"})
				h.serveFor(time.Minute)
				h.wantNoResult(in, "u1")
				h.serveFor(2 * time.Hour)
				h.update(in, "u1", change{Say: "again"})
				h.serveFor(time.Minute)
				h.wantUpdated(in, "u1", provider.UpdateCompleted, `"`+longText+`"`)
				h.wantUpdated(in, "u2", provider.UpdateRejected, "b after 1")
				h.wantReplays(r, h.read(in))
				h.raise(in, "e1", 1)
				h.finish(in)
				h.checkIdle()
			})
		})
	}
}

// A cancel of the instance ends the waits of a handler. The handler cleans up, and its return value is the result.
func TestR27_cancelledHandler_returnsItsResult(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		receivedCount := []string{}
		if err := handleChanges(ctx, &receivedCount); err != nil {
			return "", err
		}
		_, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if done := perdure.AwaitUpdateHandlers(perdure.WithoutCancel(ctx)); done != nil {
			return "", done
		}
		return strings.Join(receivedCount, " "), err
	})
	changes(t, simhub.Options{Registry: r}, changing{}, func(_ context.Context, h *hub, in provider.Instance) {
		h.update(in, "u1", change{Say: "a", Wait: "go"})
		h.turn(0)
		h.send(provider.Message{
			Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested", RequestedBy: "client",
		})
		if end := h.finish(in); end.Kind != history.OrchestrationCancelled {
			t.Errorf("ended with %s, want cancelled", end.String())
		}
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"cleaned up"`)
		h.wantReplays(r, in)
		h.checkIdle()
	})
}

// A handler that kills its process is poison. The instance is blocked, and its message becomes a dead letter. The
// repeated update is another message, which is parked like all messages for a blocked instance.
func TestR27_handlerKillsItsProcess_blocksItsInstance(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		err := perdure.SetUpdateHandler(ctx, "change", func(*perdure.OrchestrationContext, change) (string, error) {
			f.ran.Add(1)
			f.dies.Store(!f.alive.Load())
			return "done", nil
		})
		if err != nil {
			return "", err
		}
		return perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx)
	})
	changes(t, simhub.Options{Registry: r, Intercept: f.crash()}, changing{},
		func(_ context.Context, h *hub, in provider.Instance) {
			h.update(in, "u1", change{})
			h.serveFor(2 * time.Hour)
			now := h.read(in)
			if now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
				now.Diagnosis.Type != history.TypePoison || f.ran.Load() != 13 {
				t.Fatalf("after %d deliveries: got status %s, diagnosis %+v, want Blocked as poison",
					f.ran.Load(), now.Status, now.Diagnosis)
			}
			h.wantDeadLetter("sim://inbox-dead.fifo", "poison")
			h.update(in, "u1", change{})
			h.serveFor(time.Hour)
			if n := f.ran.Load(); n != 14 { // one more for each message to an instance that is blocked as poison
				t.Errorf("got %d runs, want 14", n)
			}
			h.wantNoResult(in, "u1")
			f.alive.Store(true)
			h.update(in, "u2", change{})
			h.serveFor(time.Hour)
			h.wantUpdated(in, "u1", provider.UpdateCompleted, `"done"`)
			h.wantUpdated(in, "u2", provider.UpdateCompleted, `"done"`)
			if n := countKinds(h.events(in), history.UpdateAccepted); n != 2 {
				t.Errorf("got %d accepted updates, want 2", n)
			}
		})
}

// A validator may only read. If it schedules, waits or panics, the update is rejected. If it blocks, the instance is
// blocked, like other code that waits for something other than futures.
func TestR27_validatorIsNotReadOnly_rejectsOrBlocks(t *testing.T) {
	t.Parallel()
	var hung atomic.Int64
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		open := perdure.WaitForExternalEvent[int](ctx, "never")
		err := perdure.SetUpdateHandler(ctx, "change", func(_ *perdure.OrchestrationContext, c change) (string, error) {
			if c.Say == "blocks" {
				hung.Add(1)
			}
			return "done", nil
		},
			perdure.WithValidator(func(c change) error {
				switch c.Say {
				case "waits":
					_, err := open.Await(ctx)
					return err
				case "schedules":
					defer func() { _ = recover() }()
					perdure.CallActivity(ctx, inc, 1)
				case "sets a handler":
					return perdure.SetUpdateHandler(ctx, "more", func(*perdure.OrchestrationContext, int) (int, error) {
						return 1, nil
					})
				case "elsewhere":
					done := make(chan struct{})
					go func() {
						defer close(done)
						ctx.SetCustomStatus("requested")
					}()
					<-done
				case "panics":
					panic("no")
				case "reads":
					ctx.Logger().Info("must not be logged")
					if ctx.Now().IsZero() || ctx.NewUUID() == "" || ctx.InstanceID() != "i-1" {
						return errChange
					}
				case "blocks":
					time.Sleep(time.Hour)
				}
				return nil
			}))
		if err != nil {
			return "", err
		}
		return perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx)
	})
	changes(t, simhub.Options{Registry: r}, changing{}, func(_ context.Context, h *hub, in provider.Instance) {
		before := len(h.events(in))
		for longText, want := range map[string]string{
			"waits": history.RejectedNotReadOnly, "schedules": history.RejectedNotReadOnly,
			"sets a handler": history.RejectedNotReadOnly, "elsewhere": history.RejectedNotReadOnly,
			"panics": history.RejectedByValidator + ": no: ",
		} {
			h.update(in, longText, change{Say: longText})
			h.turns()
			h.wantUpdated(in, longText, provider.UpdateRejected, want)
		}
		if events := h.events(in); len(events) != before+10 { // a turn and a rejection for each
			t.Errorf("got history %v", events)
		}
		h.send(updateMessage(in, "bad", history.Payload(`{"say":7}`)))
		h.update(in, "reads", change{Say: "reads"})
		h.turns()
		h.wantUpdated(in, "bad", provider.UpdateRejected, history.RejectedInput)
		h.wantUpdated(in, "reads", provider.UpdateCompleted, `"done"`)
		h.wantReplays(r, in)

		h.update(in, "blocks", change{Say: "blocks"})
		h.serveFor(30 * time.Minute)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeBlockingCall ||
			!strings.Contains(now.Diagnosis.Message, "update_end_test.go") {
			t.Errorf("got status %s, diagnosis %+v, want Blocked by the validator", now.Status, now.Diagnosis)
		}
		h.wantNoResult(in, "blocks")
		time.Sleep(2 * time.Hour) // until the validator has returned
		if n := hung.Load(); n > 0 {
			t.Errorf("handler ran %d times after its validator was abandoned", n)
		}
	})
}

// An update of an instance that does not exist, has ended, or is purged while the caller waits fails. The next
// incarnation of the ID does not accept the update.
func TestR27_instanceDoesNotExist_updateFails(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{Environments: 2}, changing{Events: 1},
		func(ctx context.Context, h *hub, in provider.Instance) {
			c := client.New(h.Provider)
			if _, err := c.Update(ctx, "missing", "change", change{}); !errors.Is(err, client.ErrNotFound) {
				t.Errorf("unknown instance: got error %v, want ErrNotFound", err)
			}
			h.pause(in, "p1")
			h.turn(0)
			result := make(chan error, 1)
			go func() {
				_, err := c.Update(ctx, in.InstanceID, "change", change{Say: "a"}, client.WithUpdateID("u1"))
				result <- err
			}()
			h.serveFor(time.Minute)
			h.purge(in.InstanceID)
			h.serveFor(time.Minute)
			if err := <-result; !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrEnded) {
				t.Errorf("purged instance: got error %v, want ErrNotFound or ErrEnded", err)
			}

			old := updateMessage(in, "u2", encoded(t, change{Say: "a"}))
			next := must(h.Provider.StartOrchestration(ctx, provider.Start{
				InstanceID: "i-1", Name: "changes", Input: encoded(t, changing{Events: 1}), StartID: "start-2",
			}))
			h.send(old)
			h.serveFor(time.Minute)
			if n := countKinds(h.events(next), history.UpdateAccepted); n != 0 {
				t.Errorf("got %d updates of the earlier incarnation, want 0", n)
			}
			h.wantNoResult(in, "u2")
			h.raise(next, "e1", 1)
			h.finish(next)
			if _, err := c.Update(ctx, "i-1", "change", change{}); !errors.Is(err, client.ErrEnded) {
				t.Errorf("ended instance: got error %v, want ErrEnded", err)
			}
			h.checkIdle()
		})
}

// An instance ends before it accepts the update. The caller receives ErrEnded.
func TestR27_instanceEndsFirst_callerReceivesErrEnded(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(ctx context.Context, h *hub, in provider.Instance) {
		h.raise(in, "e1", 1)
		result := make(chan error, 1)
		go func() {
			_, err := client.New(h.Provider).Update(ctx, in.InstanceID, "change", change{Say: "a"})
			result <- err
		}()
		h.serveFor(time.Minute)
		if err := <-result; !errors.Is(err, client.ErrEnded) {
			t.Errorf("got error %v, want ErrEnded", err)
		}
		h.checkIdle()
	})
}

// Interleaving: the instance is purged between the commit and the write of a result, or has results when it is purged.
// No result remains.
func TestR27_purge_leavesNoResult(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]bool{"by force": false, "after the end": true} {
		for _, meanwhile := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, during the result write: %t", name, meanwhile), func(t *testing.T) {
				t.Parallel()
				changes(t, simhub.Options{}, changing{Events: 1},
					func(ctx context.Context, h *hub, in provider.Instance) {
						h.update(in, "u0", change{Say: "a"})
						h.turn(0)
						if h.storedResults("i-1") != 1 {
							t.Fatal("got no result, want 1")
						}
						if meanwhile {
							purged := false
							h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
								if writesResult(c) && !purged {
									purged = true
									h.purge(in.InstanceID)
								}
								return next()
							})
							h.update(in, "u1", change{Say: "b"})
						}
						if ended {
							h.raise(in, "e1", 1)
						}
						if failed := h.turn(0); len(failed) > 0 {
							t.Errorf("got %d failed messages, want 0", len(failed))
						}
						h.interfere(nil)
						if !meanwhile {
							if err := h.Provider.DeleteInstance(ctx, in.InstanceID, !ended); err != nil {
								t.Fatal(err)
							}
						}
						h.wantNone(in.InstanceID)
						if n := h.storedResults("i-1"); n != 0 {
							t.Errorf("got %d results, want 0", n)
						}
						h.serveFor(time.Hour)
						h.checkIdle()
					})
			})
		}
	}
}

// A result is not written while the results of its instance are being deleted, because nothing would delete it.
func TestR27_resultsAreBeingDeleted_noResultIsWritten(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(_ context.Context, h *hub, in provider.Instance) {
		h.update(in, "u0", change{Say: "a"})
		h.turn(0)
		late := false
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			err := next()
			if d, ok := c.Input.(*dynamodb.DeleteItemInput); ok && strings.HasPrefix(text(d.Key, "sk"), "u#") && !late {
				late = true
				a := provider.UpdateResult{
					InstanceID: in.InstanceID, StartID: in.StartID, UpdateID: "u1", Name: "change",
					Outcome: provider.UpdateCompleted,
				}
				if err := h.Provider.PutUpdateResults(ctx, a); err != nil {
					t.Error(err)
				}
			}
			return err
		})
		h.purge(in.InstanceID)
		if n := h.storedResults(in.InstanceID); n != 0 || !late {
			t.Errorf("got %d results, want 0; late=%t", n, late)
		}
	})
}

// The process of a purge of many results crashes at any of its calls. The next purge deletes the rest.
func TestR27_purgeOfManyResults_continuesAfterFailures(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(ctx context.Context, h *hub, in provider.Instance) {
		for n := range 40 {
			h.update(in, fmt.Sprint("u", n), change{Say: "a"})
		}
		h.turns()
		var deletes atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "DeleteItem" {
				if deletes.Add(1)%8 == 0 {
					return simhub.ErrFailed
				}
			}
			return next()
		})
		calls := 0
		for ; h.storedResults("i-1") > 0 && calls < 40; calls++ {
			_ = h.Provider.DeleteInstance(ctx, in.InstanceID, true)
		}
		h.interfere(nil)
		if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil &&
			!errors.Is(err, provider.ErrNotFound) {
			t.Error(err)
		}
		h.wantNone("i-1")
		if n := h.storedResults("i-1"); n != 0 || deletes.Load() == 0 {
			t.Errorf("got %d results after %d calls, want 0", n, calls)
		}
		h.checkIdle()
	})
}

// Ten updates of 150 KB with results of that size are processed in order, in as many turns as they need.
func TestR27_largeUpdates_areProcessedInOrder(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		var texts []string
		err := perdure.SetUpdateHandler(ctx, "change", func(_ *perdure.OrchestrationContext, c change) (string, error) {
			texts = append(texts, c.Say[:4])
			return c.Say, nil
		})
		if err != nil {
			return "", err
		}
		_, err = perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		return strings.Join(texts, " "), err
	})
	for _, parked := range []bool{false, true} {
		changes(t, simhub.Options{Registry: r, Environments: 2}, changing{},
			func(_ context.Context, h *hub, in provider.Instance) {
				if parked {
					h.pause(in, "p1")
					h.turn(0)
				}
				for n := range 10 {
					h.update(in, fmt.Sprint("u", n), change{Say: fmt.Sprintf("%04d", n) + static(int64(n), 150<<10)})
				}
				if parked {
					h.turns()
					h.resume(in, "r1")
				}
				h.serveFor(time.Minute)
				for n := range 10 {
					h.wantUpdated(in, fmt.Sprint("u", n), provider.UpdateCompleted,
						fmt.Sprintf(`"%04d`, n)+static(int64(n), 150<<10))
				}
				h.raise(in, "e1", 1)
				if end := h.finish(in); string(end.Output) != `"0000 0001 0002 0003 0004 0005 0006 0007 0008 0009"` {
					t.Errorf("ended with %s, output %s", end.String(), end.Output)
				}
				h.wantReplays(r, in)
				h.checkIdle()
			})
	}
}

// An oversized result fails only its update.
func TestR27_oversizedResult_failsItsUpdate(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		err := perdure.SetUpdateHandler(ctx, "change", func(*perdure.OrchestrationContext, change) (string, error) {
			return strings.Repeat("x", perdure.MaxPayloadBytes), nil
		})
		if err != nil {
			return "", err
		}
		return perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx)
	})
	changes(t, simhub.Options{Registry: r}, changing{}, func(_ context.Context, h *hub, in provider.Instance) {
		h.update(in, "u1", change{})
		h.turn(0)
		a := must(h.Provider.ReadUpdate(t.Context(), "i-1", "u1"))
		if a.Outcome != provider.UpdateCompleted || a.Error == nil || a.Error.Type != history.TypePayloadTooLarge {
			t.Errorf("got result %+v, want a payload error", a)
		}
	})
}

// The queues are lost. A reconciliation writes the results of accepted updates. Updates in the queues are lost, and a
// repeated call sends a new message.
func TestR27_reconciliation_writesResults(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(ctx context.Context, h *hub, in provider.Instance) {
		dead := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if dead = dead || writesResult(c); dead {
				return simhub.ErrFailed
			}
			return next()
		})
		h.update(in, "u1", change{Say: "a"})
		h.turn(0)
		h.interfere(nil)
		h.update(in, "u2", change{Say: "b"})
		time.Sleep(10 * time.Minute)
		h.emptyInbox()
		h.wantNoResult(in, "u1")
		if _, err := h.Provider.ReconcileInstance(ctx, in.InstanceID,
			provider.ReconcileOptions{Run: "run-1"}); err != nil {
			t.Fatal(err)
		}
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
		h.serveFor(time.Hour)
		h.wantNoResult(in, "u2")
		h.update(in, "u2", change{Say: "b"})
		h.serveFor(time.Minute)
		h.wantUpdated(in, "u2", provider.UpdateCompleted, `"a b"`)
	})
}

// A panic of a handler fails the orchestration, because its change may be incomplete. An error of a handler only fails
// the update.
func TestR27_handlerPanics_failsTheOrchestration(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		err := perdure.SetUpdateHandler(ctx, "change", func(_ *perdure.OrchestrationContext, c change) (string, error) {
			if c.Say == "panic" {
				panic("half a change")
			}
			if err := perdure.AwaitUpdateHandlers(ctx); err != nil {
				return "", err
			}
			return "never", nil
		})
		if err != nil {
			return "", err
		}
		return perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx)
	})
	changes(t, simhub.Options{Registry: r}, changing{}, func(_ context.Context, h *hub, in provider.Instance) {
		h.update(in, "u1", change{Say: "waits for itself"})
		h.turn(0)
		h.wantUpdated(in, "u1", provider.UpdateCompleted, "called in an update handler; it would wait for itself")
		h.update(in, "u2", change{Say: "panic"})
		if end := h.finish(in); end.Kind != history.OrchestrationFailed || end.Error.Type != history.TypePanic {
			t.Errorf("ended with %s: %+v, want a panic", end.String(), end.Error)
		}
		h.wantUpdated(in, "u2", provider.UpdateAborted, history.TerminalReason(history.OrchestrationFailed))
		h.wantReplays(r, in)
		h.checkIdle()
	})
}

// A retention or a job deletes a small ended instance in one step, unless it has results, which are deleted first.
func TestR27_retention_deletesResults(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{Retention: 3 * days}, changing{Events: 1},
		func(ctx context.Context, h *hub, in provider.Instance) {
			h.update(in, "u1", change{Say: "a"})
			h.turns()
			h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
			h.raise(in, "e1", 1)
			h.finish(in)
			time.Sleep(4 * days)
			h.watch()
			if _, err := h.Provider.ReadInstance(ctx, in.InstanceID); !errors.Is(err, provider.ErrNotFound) {
				t.Errorf("got error %v, want ErrNotFound", err)
			}
			if n := h.storedResults(in.InstanceID); n != 0 {
				t.Errorf("got %d results, want 0", n)
			}
		})
}

// A result item of an earlier incarnation, for example from a restored table, is not a result of the current
// incarnation. The item does not prevent the current result.
func TestR27_resultOfEarlierIncarnation_isIgnored(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(ctx context.Context, h *hub, in provider.Instance) {
		h.update(in, "u1", change{Say: "old"})
		h.turns()
		left := h.countResults(in.InstanceID)
		if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil {
			t.Fatal(err)
		}
		h.turns()
		next, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: in.InstanceID, Name: "changes", Input: encoded(t, changing{Events: 1}), StartID: "next",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String("perdure"),
			Item:      left[0],
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute) // SQS has forgotten the deduplication ID of the first update
		h.update(next, "u1", change{Say: "new"})
		h.turns()
		h.wantUpdated(next, "u1", provider.UpdateCompleted, `"new"`)
	})
}
