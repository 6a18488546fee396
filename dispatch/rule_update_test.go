package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// changing is what an orchestration does while it is updated.
type changing struct {
	Events int      // that it waits for
	Anew   bool     // it continues as new at each event
	Done   bool     // it ends behind the updates that are under way
	Late   bool     // it handles updates once the first event has come
	Heard  []string // before
}

// change is what an update asks for. Its handler says it, waits for an event if that is given, and says it again.
type change struct {
	Say, Wait, Until string
	Refuse, Fail     string
	Raise            bool // an event "add" in its own instance
}

var errChange = errors.New("change refused")

// changesWhile waits for events and is updated meanwhile. It says what it heard, in order.
func changesWhile(ctx *perdure.OrchestrationContext, c changing) (string, error) {
	heard := c.Heard
	if !c.Late {
		if err := handleChanges(ctx, &heard); err != nil {
			return "", err
		}
	}
	for n := range c.Events {
		e, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil {
			return "", err
		}
		heard = append(heard, fmt.Sprint(e))
		if c.Late && n == 0 {
			if err := handleChanges(ctx, &heard); err != nil {
				return "", err
			}
		}
		if c.Anew && c.Events > 1 {
			if c.Done {
				if err := perdure.AwaitUpdateHandlers(ctx); err != nil {
					return "", err
				}
			}
			c.Events--
			c.Heard = heard
			return perdure.ContinueAsNew[string](ctx, c)
		}
	}
	if c.Done {
		if err := perdure.AwaitUpdateHandlers(ctx); err != nil {
			return "", err
		}
	}
	return strings.Join(heard, " "), nil
}

func handleChanges(ctx *perdure.OrchestrationContext, heard *[]string) error {
	return perdure.SetUpdateHandler(ctx, "change", func(ctx *perdure.OrchestrationContext, c change) (string, error) {
		*heard = append(*heard, c.Say)
		if c.Raise {
			perdure.RaiseEvent(ctx, ctx.InstanceID(), "add", 100)
		}
		for c.Until != "" && !slices.Contains(*heard, c.Until) {
			if _, err := perdure.CreateTimer(ctx, time.Second).Await(ctx); err != nil {
				return "", err
			}
		}
		if c.Wait != "" {
			if _, err := perdure.WaitForExternalEvent[int](ctx, c.Wait).Await(ctx); err != nil {
				*heard = append(*heard, "cleaned up")
				return "cleaned up", nil //nolint:nilerr // it cleans up
			}
			*heard = append(*heard, c.Say+"!")
		}
		if c.Fail != "" {
			return "", errors.New(c.Fail)
		}
		return strings.Join(*heard, " "), nil
	}, perdure.WithValidator(func(c change) error {
		if c.Refuse != "" {
			return fmt.Errorf("%w: %s after %d", errChange, c.Refuse, len(*heard))
		}
		return nil
	}))
}

func addChanging(r *perdure.Registry) *perdure.Registry {
	perdure.AddOrchestration(r, "changes", changesWhile)
	return r
}

func updateMessage(in provider.Instance, id string, data history.Payload) provider.Message {
	return provider.Message{
		Kind: provider.MessageUpdate, InstanceID: in.InstanceID, StartID: in.StartID, Name: "change", EventID: id, Data: data, RequestedBy: "ann",
	}
}

// update sends an update.
func (h *hub) update(in provider.Instance, id string, c change) {
	h.t.Helper()
	h.send(updateMessage(in, id, encoded(h.t, c)))
}

// raiseGo sends the external event that handlers wait for.
func (h *hub) raiseGo(in provider.Instance) {
	h.t.Helper()
	h.send(provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", Data: history.Payload("1")})
}

// wantUpdated fails unless an update is answered so: with this result, failure or reason.
func (h *hub) wantUpdated(in provider.Instance, id string, outcome provider.UpdateOutcome, says string) {
	h.t.Helper()
	a, err := h.Provider.ReadUpdate(h.t.Context(), in.InstanceID, id)
	got := string(a.Result) + a.Reason
	if a.Error != nil {
		got += ": " + a.Error.Message
	}
	if err != nil || a.Outcome != outcome || !strings.Contains(got, says) || a.StartID != in.StartID || a.UpdateID != id {
		const shown = 200
		h.t.Errorf("update %s is answered with %s %.*s, %v; want %s %.*s", id, a.Outcome, shown, got, err, outcome, shown, says)
	}
}

// wantUnanswered fails if an update has an answer.
func (h *hub) wantUnanswered(in provider.Instance, id string) {
	h.t.Helper()
	if a, err := h.Provider.ReadUpdate(h.t.Context(), in.InstanceID, id); !errors.Is(err, provider.ErrNotFound) {
		h.t.Errorf("update %s is answered with %+v, %v", id, a, err)
	}
}

// isAnswer reports whether a call writes the answer to an update.
func isAnswer(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && slices.ContainsFunc(in.TransactItems, func(w ddbtypes.TransactWriteItem) bool {
		return w.Put != nil && strings.HasPrefix(text(w.Put.Item, "sk"), "u#")
	})
}

// storedAnswers counts the answers that lie beside an instance.
func (h *hub) storedAnswers(instanceID string) int {
	h.t.Helper()
	return len(h.answersOf(instanceID))
}

func (h *hub) answersOf(instanceID string) []map[string]ddbtypes.AttributeValue {
	h.t.Helper()
	out, err := h.Cloud.Table.Query(h.t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":pk": textValue("i#" + instanceID), ":sk": textValue("u#")},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out.Items
}

// changes runs a test with an instance that has had its first turn.
func changes(t *testing.T, o simhub.Options, c changing, test func(ctx context.Context, h *hub, in provider.Instance)) {
	t.Helper()
	if o.Registry == nil {
		o.Registry = addChanging(registry())
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.start("changes", c)
		h.turn(0)
		test(ctx, h, in)
	})
}

// An update has its place among the messages of its instance: its handler starts between the event before it and that behind it, and has run as far
// as it can before the latter is taken.
func TestR27AnUpdateHasItsPlace(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 2}, func(_ context.Context, h *hub, in provider.Instance) {
		h.raise(in, "e1", 1)
		h.update(in, "u1", change{Say: "changed"})
		h.update(in, "u2", change{Refuse: "no"})
		h.raise(in, "e2", 2)
		h.turn(0)
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"1 changed"`)
		h.wantUpdated(in, "u2", provider.UpdateRejected, "refused: change refused: no after 2")
		if end := h.finish(in); string(end.Output) != `"1 changed 2"` {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		events := h.events(in)
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.UpdateAccepted })
		if a := events[i]; a.Name != "change" || a.EventID != "u1" || a.RequestedBy != "ann" || events[i+1].Kind != history.UpdateCompleted || events[i+1].SourceEventID != a.ID {
			t.Errorf("history has %+v, %+v", a, events[i+1])
		}
		if n := countKinds(events, history.TurnStarted); n != 2 {
			t.Errorf("%d turns, want the first and one", n)
		}
		h.wantReplays(addChanging(registry()), in)
		h.checkRest()
	})
}

// Interleavings: a message comes twice, at once, behind others, once its handler is done, and in the next execution: it is one update.
func TestR27EveryMessageTwice(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		inBubble(t, simhub.Options{Environments: 2, Registry: addChanging(registry())}, func(ctx context.Context, h *hub) {
			h.interfere(sentTwice(ctx, h))
			in := h.start("changes", changing{Events: 3, Anew: anew, Done: true})
			h.serveFor(time.Second)
			again := func() {
				time.Sleep(6 * time.Minute) // the queue has forgotten the first
				h.update(in, "u1", change{Say: "again"})
				h.update(in, "u2", change{Say: "again"})
				h.serveFor(time.Second)
			}
			h.update(in, "u1", change{Say: "a", Wait: "go"})
			h.update(in, "u2", change{Refuse: "b"})
			again()
			h.raiseGo(in)
			h.serveFor(time.Second)
			again()
			for n := range 3 {
				h.raise(in, fmt.Sprint("e", n), n)
				if n < 2 {
					again()
				}
			}
			end := h.finish(in)
			if string(end.Output) != `"a a! 0 1 2"` {
				t.Errorf("ended with %s %s", end.String(), end.Output)
			}
			h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a a!"`)
			h.wantUpdated(in, "u2", provider.UpdateRejected, "refused: change refused: b")
			h.checkRest()
		})
	}
}

// sentTwice has every message that is sent to the inbox come twice, the second time as one of its own.
func sentTwice(ctx context.Context, h *hub) simaws.Interceptor {
	return func(_ context.Context, c simaws.Call, next func() error) error {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || aws.ToString(in.QueueUrl) != h.Provider.Config().InboxURL || strings.HasPrefix(aws.ToString(in.Entries[0].MessageDeduplicationId), "again") {
			return next()
		}
		err := next()
		copies := &sqs.SendMessageBatchInput{QueueUrl: in.QueueUrl, Entries: slices.Clone(in.Entries)}
		for i := range copies.Entries {
			copies.Entries[i].MessageDeduplicationId = aws.String("again" + aws.ToString(copies.Entries[i].MessageDeduplicationId))
		}
		if _, sent := h.Cloud.Queues.SendMessageBatch(ctx, copies); sent != nil {
			h.t.Error(sent)
		}
		return err
	}
}

// Of two callers with one id the one counts whose message comes first. Both get its answer.
func TestR27TwoCallersWithOneID(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(ctx context.Context, h *hub, in provider.Instance) {
		h.send(updateMessage(in, "u1", encoded(t, change{Say: "first", Wait: "go"})))
		time.Sleep(6 * time.Minute)
		h.send(updateMessage(in, "u1", encoded(t, change{Say: "second"})))
		h.turn(0)
		h.raiseGo(in)
		h.turn(0)
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"first first!"`)
		c := client.New(h.Provider)
		for range 2 {
			if got, err := c.Update(ctx, in.InstanceID, "change", change{Say: "third"}, client.WithUpdateID("u1")); err != nil || string(got) != `"first first!"` {
				t.Errorf("answered %s, %v", got, err)
			}
		}
		if left := h.receive(h.Provider.Config().InboxURL); len(left) > 0 {
			t.Errorf("what is answered is sent again: %s", left[0].Body)
		}
	})
}

// Once the answer has had its time, an update that is sent again is answered by history, or as forgotten: where the execution that took it is over. An answer that
// comes to be known after all takes the place of that.
func TestR27AnUpdateIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		t.Run(fmt.Sprintf("anew=%t", anew), func(t *testing.T) {
			t.Parallel()
			changes(t, simhub.Options{}, changing{Events: 3, Anew: anew}, func(_ context.Context, h *hub, in provider.Instance) {
				h.update(in, "u1", change{Say: "a"})
				h.update(in, "u2", change{Refuse: "b"})
				h.raise(in, "e1", 1)
				h.turn(0)
				time.Sleep(provider.UpdateResultRetention + time.Hour)
				h.wantUnanswered(in, "u1")
				h.update(in, "u1", change{Say: "again"})
				h.update(in, "u2", change{Say: "again"})
				h.update(in, "u3", change{Say: "c"})
				h.turns()
				if anew {
					h.wantUpdated(in, "u1", provider.UpdateResultExpired, "")
					h.wantUpdated(in, "u2", provider.UpdateResultExpired, "")
				} else {
					h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
					h.wantUpdated(in, "u2", provider.UpdateRejected, "b after 1")
				}
				h.wantUpdated(in, "u3", provider.UpdateCompleted, `"a 1 c"`)

				known := provider.UpdateResult{InstanceID: in.InstanceID, StartID: in.StartID, UpdateID: "u1", Name: "change", Outcome: provider.UpdateCompleted, Result: history.Payload(`"a"`)}
				if err := h.Provider.PutUpdateResults(t.Context(), known); err != nil {
					t.Fatal(err)
				}
				h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
			})
		})
	}
}

// A copy in the batch in which its update is taken is no update that is over: nobody is told that it is forgotten.
func TestR27ACopyInOneBatchForgetsNothing(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(_ context.Context, h *hub, in provider.Instance) {
		written := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isAnswer(c) {
				written++
			}
			return next()
		})
		h.update(in, "u1", change{Say: "a"})
		time.Sleep(6 * time.Minute)
		h.update(in, "u1", change{Say: "a"})
		h.turn(0)
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
		if written != 1 {
			t.Errorf("%d answers were written, want one", written)
		}
	})
}

// Interleaving: the validator rejects, the commit does not come about, and the message is taken again by a process whose validator accepts. What was committed
// counts, and nobody has seen the other.
func TestR27WhatIsCommittedCounts(t *testing.T) {
	t.Parallel()
	for name, rejectsFirst := range map[string]bool{"rejected first": true, "accepted first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			r := registry()
			perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
				err := perdure.SetUpdateHandler(ctx, "change", func(*perdure.OrchestrationContext, change) (string, error) { return "done", nil },
					perdure.WithValidator(func(change) error {
						if first := asked.Add(1) == 1; first == rejectsFirst {
							return errChange
						}
						return nil
					}))
				if err != nil {
					return "", err
				}
				return perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx)
			})
			changes(t, simhub.Options{Registry: r}, changing{}, func(_ context.Context, h *hub, in provider.Instance) {
				h.update(in, "u1", change{})
				failed := false
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if !failed && isCommit(c, "h#0000000002") {
						failed = true
						return simhub.ErrFailed
					}
					return next()
				})
				if lost := h.turn(0); len(lost) != 1 || !failed {
					t.Fatalf("%d messages failed", len(lost))
				}
				h.wantUnanswered(in, "u1")
				h.serveFor(time.Minute)
				want := provider.UpdateRejected
				if rejectsFirst {
					want = provider.UpdateCompleted
				}
				h.wantUpdated(in, "u1", want, "")
				if n := countKinds(h.events(in), history.UpdateRejected) + countKinds(h.events(in), history.UpdateAccepted); n != 1 || asked.Load() != 2 {
					t.Errorf("%d are in history, asked %d times", n, asked.Load())
				}
				h.wantReplays(r, in)
				if asked.Load() != 2 {
					t.Error("a replay has asked the validator")
				}
			})
		})
	}
}

// Interleaving: the turn that rejects or completes an update is committed, and its process dies before the answer is written, or as it is. The message leads back to it.
func TestR27AnAnswerSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			t.Parallel()
			intercept, crashed := crashOnce(after, isAnswer)
			changes(t, simhub.Options{Intercept: intercept, Environments: 2}, changing{Events: 1}, func(_ context.Context, h *hub, in provider.Instance) {
				h.update(in, "u1", change{Refuse: "no"})
				h.update(in, "u2", change{Say: "yes"})
				h.serveFor(10 * time.Minute)
				if !crashed.Load() {
					t.Fatal("nothing has crashed")
				}
				h.wantUpdated(in, "u1", provider.UpdateRejected, "no after 0")
				h.wantUpdated(in, "u2", provider.UpdateCompleted, `"yes"`)
				h.raise(in, "e1", 1)
				h.finish(in)
				h.checkRest()
			})
		})
	}
}

// The answer that cannot be written for an hour keeps the messages of its turn, and all that comes behind them. Then it is written.
func TestR27AnAnswerThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(_ context.Context, h *hub, in provider.Instance) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isAnswer(c) {
				return simhub.ErrFailed
			}
			return next()
		})
		h.update(in, "u1", change{Say: "a"})
		h.raise(in, "e1", 1)
		h.serveFor(20 * time.Minute)
		h.wantUnanswered(in, "u1")
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != `"a 1"` {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
		h.checkRest()
	})
}

// An update that comes with the start is taken in the first turn, behind the first wait of the body. One for an instance that is to begin later is kept until then.
func TestR27AnUpdateBeforeTheCodeBegins(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"with the start": 0, "to a delayed start": time.Hour} {
		for _, size := range []int{0, 60 << 10} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{Environments: 2, Registry: addChanging(registry())}, func(ctx context.Context, h *hub) {
					s := provider.Start{InstanceID: "i-1", Name: "changes", Input: encoded(t, changing{Events: 1}), StartID: "start-1"}
					if delay > 0 {
						s.StartAt = time.Now().Add(delay)
					}
					in := must(h.Provider.StartOrchestration(ctx, s))
					say := "a" + static(1, size)
					for id := range 2 {
						h.update(in, fmt.Sprint("u", id), change{Say: say})
						h.serveFor(time.Minute)
					}
					h.update(in, "u2", change{Refuse: "b"})
					time.Sleep(6 * time.Minute) // the queue has forgotten the first
					h.update(in, "u0", change{Say: "a copy"})
					h.serveFor(time.Minute)
					if delay > 0 {
						h.wantUnanswered(in, "u0")
						h.serveFor(delay)
					}
					h.wantUpdated(in, "u0", provider.UpdateCompleted, `"`+say+`"`)
					h.wantUpdated(in, "u1", provider.UpdateCompleted, `"`+say+" "+say+`"`)
					h.wantUpdated(in, "u2", provider.UpdateRejected, "b after 2")
					h.wantReplays(addChanging(registry()), in)
					h.raise(in, "e1", 1)
					h.finish(in)
					h.checkRest()
				})
			})
		}
	}
}

// What has come for an instance that ends before it begins was never taken.
func TestR27AnUpdateOfWhatNeverBegins(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: addChanging(registry())}, func(ctx context.Context, h *hub) {
		in := must(h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "changes", Input: encoded(t, changing{Events: 1}), StartID: "start-1", StartAt: time.Now().Add(time.Hour),
		}))
		h.update(in, "u1", change{Say: "a"})
		h.turns()
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "i-1"})
		h.turns()
		h.wantUnanswered(in, "u1")
		if _, err := client.New(h.Provider).Update(ctx, "i-1", "change", change{}, client.WithUpdateID("u1")); !errors.Is(err, client.ErrEnded) {
			t.Errorf("the caller is told %v", err)
		}
		h.serveFor(2 * time.Hour)
		h.checkRest()
	})
}

// A handler that is set later is not there before: what comes first is rejected, what comes behind is accepted, in one batch too, and in each replay.
func TestR27AHandlerThatIsSetLater(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 2, Late: true}, func(_ context.Context, h *hub, in provider.Instance) {
		h.update(in, "u1", change{Say: "early"})
		h.raise(in, "e1", 1)
		h.update(in, "u2", change{Say: "late"})
		h.turn(0)
		h.wantUpdated(in, "u1", provider.UpdateRejected, history.RejectedNoHandler)
		h.wantUpdated(in, "u2", provider.UpdateCompleted, `"1 late"`)
		h.wantReplays(addChanging(registry()), in)
		h.raise(in, "e2", 2)
		h.finish(in)
		h.checkRest()
	})
}

// Handlers that wait run side by side: each is resumed as it becomes able to.
func TestR27HandlersRunSideBySide(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{Environments: 2}, changing{Events: 1, Done: true}, func(_ context.Context, h *hub, in provider.Instance) {
		h.update(in, "u1", change{Say: "a", Until: "b"})
		h.serveFor(time.Minute)
		h.update(in, "u2", change{Say: "b", Until: "a", Wait: "go"})
		h.serveFor(5 * time.Minute) // the timer of the moment in which serving has stopped may have to come again
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a b"`)
		h.wantUnanswered(in, "u2")
		h.raise(in, "e1", 1)
		h.serveFor(time.Minute)
		h.wantStatus(in, provider.StatusRunning) // it waits for its updates
		h.raiseGo(in)
		if end := h.finish(in); string(end.Output) != `"a b 1 b!"` {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		h.checkRest()
	})
}
