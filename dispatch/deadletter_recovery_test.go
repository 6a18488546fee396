package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// These tests recover dead letters. Interleavings:
//   - The sweeper resends a message within five minutes, while SQS still deduplicates it.
//   - The sweeper crashes after it has resent the message, and resends it again.
//   - The message becomes a dead letter repeatedly.
//   - A turn had consumed the message, but its outputs could never be sent. The sequence number of the recovered
//     message is above the watermark.
//   - Another message arrives first, and its turn continues as new.

// recoverDeadLetters runs one sweep, which recovers dead letters.
func (h *hub) recoverDeadLetters(ctx context.Context) {
	h.t.Helper()
	if _, err := h.Renewer.Sweep(ctx); err != nil {
		h.t.Fatal(err)
	}
}

// A message of any kind that becomes a dead letter within minutes is not lost.
func TestR13_recoveredDeadLetter_isNotDeduplicated(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(h *hub, in provider.Instance){
		"event": func(h *hub, in provider.Instance) { h.raise(in, "e", 7) },
		"outcome of a child": func(h *hub, in provider.Instance) {
			h.send(provider.Message{
				Kind: provider.MessageChildOutcome, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
				SourceEventID: 3, Result: history.Payload("7"),
			})
		},
		"outcome of an activity": func(h *hub, in provider.Instance) { h.complete(in, 0, 3) },
		"timer": func(h *hub, in provider.Instance) {
			h.send(provider.Message{
				Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 3,
			})
		},
		"start": func(h *hub, in provider.Instance) {
			h.send(provider.Message{
				Kind: provider.MessageStart, InstanceID: in.InstanceID + "-x", Name: "nothing", StartID: "s",
			})
		},
		"parent's cancel": func(h *hub, _ provider.Instance) {
			h.send(provider.Message{
				Kind: provider.MessageCancel, InstanceID: "kid", StartID: "s",
				Parent: &history.Parent{InstanceID: "i-1"},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(ctx context.Context, h *hub) {
				in := h.start("sleeper", 0)
				h.turn(0)
				send(h, in)
				for n := 1; n <= 3; n++ {
					h.exhaust(ctx, provider.QueueInbox, "sim://inbox.fifo")
					h.recoverDeadLetters(ctx)
					records := h.receive("sim://inbox.fifo")
					if len(records) != 1 {
						t.Fatalf("recovery %d: got %d records, want 1", n, len(records))
					}
					_ = h.Provider.AbandonRecords(ctx, provider.QueueInbox, 0, records...)
					time.Sleep(time.Minute)
					h.recoverDeadLetters(ctx) // the sweeper ignores the copy in the dead-letter queue
				}
			})
		})
	}
}

// The only message of an instance becomes a dead letter twice. The instance continues, and consumes the message once.
func TestR13_eventRecoveredTwice_arrivesOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.raise(in, "e", 5)
		for range 2 {
			h.exhaust(ctx, provider.QueueInbox, "sim://inbox.fifo")
			sent := 0
			// the sweeper crashes after it has sent the message
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				if send, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *send.QueueUrl == "sim://inbox.fifo" {
					if sent++; sent == 1 {
						_ = next()
						return errors.New("the process has crashed")
					}
				}
				return next()
			})
			if _, err := h.Renewer.Sweep(ctx); err == nil {
				t.Error("sweep did not report the failure")
			}
			h.interfere(nil)
			time.Sleep(70 * time.Second)
			h.recoverDeadLetters(ctx)
		}
		h.serveFor(time.Minute)
		h.raise(in, "f", 2)
		if end := h.finish(in); string(end.Output) != "7" {
			t.Errorf("ended with %s, output %s, want 7", end.String(), end.Output)
		}
	})
}

// failSendsUntilDeadLetter runs turns of a message while selected sends fail, until the message becomes a dead letter.
func (h *hub) failSendsUntilDeadLetter(refused func(*sqs.SendMessageBatchInput) bool) {
	h.t.Helper()
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if send, ok := c.Input.(*sqs.SendMessageBatchInput); ok && refused(send) {
			return errors.New("out of service")
		}
		return next()
	})
	for range 100 {
		h.turn(0)
		time.Sleep(6 * time.Minute)
	}
	if left := h.receive("sim://inbox.fifo"); len(left) > 0 {
		h.t.Fatal("message is still in the inbox")
	}
	h.interfere(nil)
}

// sendsWork reports whether a call sends work items. startsOther reports whether it starts another orchestration.
func sendsWork(send *sqs.SendMessageBatchInput) bool { return *send.QueueUrl == "sim://default" }

func startsOther(send *sqs.SendMessageBatchInput) bool {
	return strings.Contains(*send.Entries[0].MessageBody, `"kind":"start"`)
}

// A turn consumed a message, and its outputs could not be sent for a night. The message becomes a dead letter. Its
// recovery causes a redispatch of the outputs, even if another message arrived first.
func TestR13_recoveredDeadLetter_redispatchesItsTurn(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"alone": false, "another came first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.start("chain", 2)
				h.failSendsUntilDeadLetter(sendsWork)
				if other {
					h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
					h.turn(0)
				}
				h.recoverDeadLetters(ctx)
				if end := h.finish(in); string(end.Output) != "2" {
					t.Errorf("ended with %s, output %s, want 2", end.String(), end.Output)
				}
			})
		})
	}
}

// The recovery also redispatches the outputs for a start message whose instance exists, and for an execution that has
// since continued as new.
func TestR13_recoveredStart_redispatchesItsTurn(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]provider.Message{
		"start": {
			Kind: provider.MessageStart, InstanceID: "i-1", Name: "chain", Input: history.Payload("2"),
			StartID: "start-1",
		},
		"continue as new": {
			Kind: provider.MessageStart, InstanceID: "i-1", Name: "on-and-on", Input: history.Payload("3"),
			StartID: "start-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: continues()}, func(ctx context.Context, h *hub) {
				h.send(start)
				h.failSendsUntilDeadLetter(sendsWork)
				h.recoverDeadLetters(ctx)
				in, err := h.Provider.ReadInstance(ctx, "i-1")
				if err != nil {
					t.Fatal(err)
				}
				if end := h.finish(in); string(end.Output) != "2" {
					t.Errorf("ended with %s, output %s, want 2", end.String(), end.Output)
				}
			})
		})
	}
}

// Two recovered messages arrive together. One lacks the time at which it became a dead letter, as in an earlier
// release. Each causes a redispatch.
func TestR13_deadLettersRecoveredTogether_redispatchBothTurns(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 2)
		h.failSendsUntilDeadLetter(sendsWork)
		h.raise(in, "e", 1)
		h.turn(0)
		time.Sleep(10 * time.Minute)
		now := time.Now().UTC()
		h.send(provider.Message{
			Kind: provider.MessageWake, InstanceID: in.InstanceID,
			Redrive: &provider.Redrive{Record: "a", Times: 1, MovedAt: &now},
		})
		h.send(provider.Message{
			Kind: provider.MessageWake, InstanceID: in.InstanceID, Redrive: &provider.Redrive{Record: "b", Times: 1},
		})
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s, output %s, want 2", end.String(), end.Output)
		}
	})
}

// A client's request becomes a dead letter. The instance is purged, and its ID is started again before the recovery.
// The new incarnation is unaffected.
func TestR13_recoveredRequest_doesNotReachTheNextIncarnation(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]provider.Message{
		"event":     {Kind: provider.MessageEventRaised, Name: "add", EventID: "e", Data: history.Payload("5")},
		"terminate": {Kind: provider.MessageTerminate, Text: "enough"},
		"cancel":    {Kind: provider.MessageCancel, Text: "enough"},
		"pause":     {Kind: provider.MessageExecutionSuspended, EventID: "p"},
	} {
		m.InstanceID = "i-1"
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", purged ", again), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(ctx context.Context, h *hub) {
					h.start("sleeper", 0)
					h.turn(0)
					h.send(m)
					h.exhaust(ctx, provider.QueueInbox, "sim://inbox.fifo")
					if again {
						time.Sleep(time.Minute)
						h.purge("i-1")
						time.Sleep(time.Hour)
						if _, err := h.Provider.StartOrchestration(ctx, provider.Start{
							InstanceID: "i-1",
							Name:       "sleeper", Input: encoded(t, 0), StartID: "start-2",
						}); err != nil {
							t.Fatal(err)
						}
						h.turn(0)
					}
					h.recoverDeadLetters(ctx)
					h.serveFor(time.Minute)
					now, err := h.Provider.ReadInstance(ctx, "i-1")
					if untouched := now.Status == history.StatusRunning; err != nil || untouched != again {
						t.Errorf("got status %q, error %v", now.Status, err)
					}
					h.wantEmpty()
				})
			})
		}
	}
}

// continues returns a registry with an orchestration that continues as new n times before it runs a chain of two.
func continues() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "on-and-on", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n > 0 {
			return perdure.ContinueAsNew[int](ctx, n-1)
		}
		return chain(ctx, 2)
	})
	return r
}

// A turn starts another orchestration, and this start cannot be sent for a night. Its message becomes a dead letter,
// and later messages are processed first. The instance continues as new, so the turn belongs to a past execution when
// the message is recovered.
func TestR13_recoveredDeadLetterOfPastExecution_redispatchesItsTurn(t *testing.T) {
	t.Parallel()
	for _, executions := range []int{1, 2, 5} {
		for name, byEvent := range map[string]bool{"a wake": false, "an event": true} {
			t.Run(fmt.Sprint(name, ", ", executions), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{Registry: starts()}, func(ctx context.Context, h *hub) {
					in := h.start("starts", starting{ByEvent: byEvent, Left: executions})
					if byEvent {
						h.turn(0)
						h.raise(in, "now", 1)
					}
					h.failSendsUntilDeadLetter(startsOther)
					for n := range executions {
						h.raise(in, fmt.Sprint("go ", n), n)
						h.turn(0)
						time.Sleep(6 * time.Minute)
					}
					h.recoverDeadLetters(ctx)
					h.serveFor(time.Hour)
					if kid, err := h.Provider.ReadInstance(ctx, "kid"); err != nil ||
						kid.Status != history.StatusCompleted {
						t.Errorf("started instance: got status %q, error %v, want Completed", kid.Status, err)
					}
				})
			})
		}
	}
}

// starting is the input of the orchestration "starts".
type starting struct {
	ByEvent bool
	Left    int
	Started bool
}

// starts returns a registry with an orchestration that starts another one, and continues as new after each event.
func starts() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "starts", func(ctx *perdure.OrchestrationContext, s starting) (int, error) {
		if s.ByEvent && !s.Started {
			if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
				return 0, err
			}
		}
		if !s.Started {
			if _, err := perdure.StartOrchestration(ctx, "chain", 1, perdure.WithInstanceID("kid")); err != nil {
				return 0, err
			}
		}
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil || s.Left == 0 {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, starting{Left: s.Left - 1, Started: true})
	})
	return r
}

// A process that is stopped repeatedly, for example by deployments, does not use up the deliveries of a record.
func TestPoll_processStoppedRepeatedly_usesUpNoDeliveries(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.start("chain", 1)
		h.turn(0)
		deliveries := 0
		for began := time.Now(); time.Since(began) < time.Hour; {
			stopped, stop := context.WithTimeout(ctx, 2300*time.Millisecond)
			_ = dispatch.Poll(stopped, h.Provider, "default", func(ctx context.Context, _ []provider.Record) []string {
				deliveries++
				<-ctx.Done()
				return nil
			}, dispatch.PollOptions{Concurrency: 1, GracePeriod: -1, Logger: slog.New(slog.DiscardHandler)})
			stop()
		}
		t.Logf("%d deliveries in an hour to a process that is stopped every 2.3 seconds", deliveries)
		if deliveries > 30 {
			t.Errorf("got %d deliveries, want at most 30", deliveries)
		}
	})
}
