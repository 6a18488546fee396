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

// changing is the input of an orchestration that is updated while it waits.
type changing struct {
	Events    int      // events that it waits for
	Continues bool     // continue as new after each event
	Done      bool     // await update handlers before the end
	Late      bool     // set the update handler after the first event
	Received  []string // by earlier executions
}

// change is the input of an update. Its handler records Say, waits for an event if Wait is set, and records Say again.
type change struct {
	Say, Wait, Until string
	Refuse, Fail     string
	Raise            bool // raise an event "add" in its own instance
}

var errChange = errors.New("change refused")

// changesWhile waits for events while it is updated. It returns the received events and updates in order.
func changesWhile(ctx *perdure.OrchestrationContext, c changing) (string, error) {
	receivedCount := c.Received
	if !c.Late {
		if err := handleChanges(ctx, &receivedCount); err != nil {
			return "", err
		}
	}
	for n := range c.Events {
		e, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil {
			return "", err
		}
		receivedCount = append(receivedCount, fmt.Sprint(e))
		if c.Late && n == 0 {
			if err := handleChanges(ctx, &receivedCount); err != nil {
				return "", err
			}
		}
		if c.Continues && c.Events > 1 {
			if c.Done {
				if err := perdure.AwaitUpdateHandlers(ctx); err != nil {
					return "", err
				}
			}
			c.Events--
			c.Received = receivedCount
			return perdure.ContinueAsNew[string](ctx, c)
		}
	}
	if c.Done {
		if err := perdure.AwaitUpdateHandlers(ctx); err != nil {
			return "", err
		}
	}
	return strings.Join(receivedCount, " "), nil
}

func handleChanges(ctx *perdure.OrchestrationContext, receivedCount *[]string) error {
	return perdure.SetUpdateHandler(ctx, "change", func(ctx *perdure.OrchestrationContext, c change) (string, error) {
		*receivedCount = append(*receivedCount, c.Say)
		if c.Raise {
			perdure.RaiseEvent(ctx, ctx.InstanceID(), "add", 100)
		}
		for c.Until != "" && !slices.Contains(*receivedCount, c.Until) {
			if _, err := perdure.CreateTimer(ctx, time.Second).Await(ctx); err != nil {
				return "", err
			}
		}
		if c.Wait != "" {
			if _, err := perdure.WaitForExternalEvent[int](ctx, c.Wait).Await(ctx); err != nil {
				*receivedCount = append(*receivedCount, "cleaned up")
				return "cleaned up", nil //nolint:nilerr // it cleans up
			}
			*receivedCount = append(*receivedCount, c.Say+"!")
		}
		if c.Fail != "" {
			return "", errors.New(c.Fail)
		}
		return strings.Join(*receivedCount, " "), nil
	}, perdure.WithValidator(func(c change) error {
		if c.Refuse != "" {
			return fmt.Errorf("%w: %s after %d", errChange, c.Refuse, len(*receivedCount))
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
		Kind: provider.MessageUpdate, InstanceID: in.InstanceID, StartID: in.StartID, Name: "change", EventID: id,
		Data: data, RequestedBy: "ann",
	}
}

// update sends an update.
func (h *hub) update(in provider.Instance, id string, c change) {
	h.t.Helper()
	h.send(updateMessage(in, id, encoded(h.t, c)))
}

// raiseGo sends the external event for which handlers wait.
func (h *hub) raiseGo(in provider.Instance) {
	h.t.Helper()
	h.send(provider.Message{
		Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", Data: history.Payload("1"),
	})
}

// wantUpdated fails the test unless an update has the given outcome, and a result, error or reason that contains
// mentions.
func (h *hub) wantUpdated(in provider.Instance, id string, outcome provider.UpdateOutcome, mentions string) {
	h.t.Helper()
	a, err := h.Provider.ReadUpdate(h.t.Context(), in.InstanceID, id)
	got := string(a.Result) + a.Reason
	if a.Error != nil {
		got += ": " + a.Error.Message
	}
	if err != nil || a.Outcome != outcome || !strings.Contains(got, mentions) || a.StartID != in.StartID ||
		a.UpdateID != id {
		const shown = 200
		h.t.Errorf("update %s: got %s %.*s, error %v; want %s %.*s",
			id, a.Outcome, shown, got, err, outcome, shown, mentions)
	}
}

// wantNoResult fails the test if an update has a result.
func (h *hub) wantNoResult(in provider.Instance, id string) {
	h.t.Helper()
	if a, err := h.Provider.ReadUpdate(h.t.Context(), in.InstanceID, id); !errors.Is(err, provider.ErrNotFound) {
		h.t.Errorf("update %s: got %+v, error %v, want no result", id, a, err)
	}
}

// writesResult reports whether a call writes the result of an update.
func writesResult(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && slices.ContainsFunc(in.TransactItems, func(w ddbtypes.TransactWriteItem) bool {
		return w.Put != nil && strings.HasPrefix(text(w.Put.Item, "sk"), "u#")
	})
}

// storedResults counts the result items of an instance.
func (h *hub) storedResults(instanceID string) int {
	h.t.Helper()
	return len(h.countResults(instanceID))
}

func (h *hub) countResults(instanceID string) []map[string]ddbtypes.AttributeValue {
	h.t.Helper()
	out, err := h.Cloud.Table.Query(h.t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":pk": textValue("i#" + instanceID), ":sk": textValue("u#"),
		},
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

// An update keeps its position among the messages of its instance. Its handler starts after the previous event, and
// runs until it waits before the next event is consumed.
func TestR27_update_keepsItsPositionAmongEvents(t *testing.T) {
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
			t.Errorf("ended with %s, output %s", end.String(), end.Output)
		}
		events := h.events(in)
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.UpdateAccepted })
		if a := events[i]; a.Name != "change" || a.EventID != "u1" || a.RequestedBy != "ann" ||
			events[i+1].Kind != history.UpdateCompleted || events[i+1].SourceEventID != a.ID {
			t.Errorf("got events %+v, %+v", a, events[i+1])
		}
		if n := countKinds(events, history.TurnStarted); n != 2 {
			t.Errorf("got %d turns, want the first and one", n)
		}
		h.wantReplays(addChanging(registry()), in)
		h.checkIdle()
	})
}

// A message is resent at once, after other messages, after the end of its handler, and in the next execution. It
// remains one update.
func TestR27_everyMessageSentTwice_isOneUpdate(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		inBubble(t, simhub.Options{
			Environments: 2, Registry: addChanging(registry()),
		}, func(ctx context.Context, h *hub) {
			h.interfere(sentTwice(ctx, h))
			in := h.start("changes", changing{Events: 3, Continues: anew, Done: true})
			h.serveFor(time.Second)
			again := func() {
				time.Sleep(6 * time.Minute) // SQS has forgotten the deduplication ID of the first copy
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
				t.Errorf("ended with %s, output %s", end.String(), end.Output)
			}
			h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a a!"`)
			h.wantUpdated(in, "u2", provider.UpdateRejected, "refused: change refused: b")
			h.checkIdle()
		})
	}
}

// sentTwice sends every message to the inbox twice, the second time with another deduplication ID.
func sentTwice(ctx context.Context, h *hub) simaws.Interceptor {
	return func(_ context.Context, c simaws.Call, next func() error) error {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || aws.ToString(in.QueueUrl) != h.Provider.Config().InboxURL ||
			strings.HasPrefix(aws.ToString(in.Entries[0].MessageDeduplicationId), "again") {
			return next()
		}
		err := next()
		copies := &sqs.SendMessageBatchInput{QueueUrl: in.QueueUrl, Entries: slices.Clone(in.Entries)}
		for i := range copies.Entries {
			copies.Entries[i].MessageDeduplicationId = aws.String("again" +
				aws.ToString(copies.Entries[i].MessageDeduplicationId))
		}
		if _, sent := h.Cloud.Queues.SendMessageBatch(ctx, copies); sent != nil {
			h.t.Error(sent)
		}
		return err
	}
}

// If two callers use the same ID, the first message counts. Both callers receive its result.
func TestR27_twoCallersWithOneID_shareTheFirstResult(t *testing.T) {
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
			if got, err := c.Update(ctx, in.InstanceID, "change", change{Say: "third"},
				client.WithUpdateID("u1")); err != nil || string(got) != `"first first!"` {
				t.Errorf("got %s, error %v, want the first result", got, err)
			}
		}
		if left := h.receive(h.Provider.Config().InboxURL); len(left) > 0 {
			t.Errorf("an update with a result was sent again: %s", left[0].Body)
		}
	})
}

// After the result item has expired, a repeated update receives its result from history, or result_expired if the
// execution that accepted it has ended. A later result replaces result_expired.
func TestR27_updateRepeatedAfterItsResultExpired_receivesAResult(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		t.Run(fmt.Sprintf("anew=%t", anew), func(t *testing.T) {
			t.Parallel()
			changes(t, simhub.Options{}, changing{Events: 3, Continues: anew},
				func(_ context.Context, h *hub, in provider.Instance) {
					h.update(in, "u1", change{Say: "a"})
					h.update(in, "u2", change{Refuse: "b"})
					h.raise(in, "e1", 1)
					h.turn(0)
					time.Sleep(provider.UpdateResultRetention + time.Hour)
					h.wantNoResult(in, "u1")
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

					known := provider.UpdateResult{
						InstanceID: in.InstanceID, StartID: in.StartID, UpdateID: "u1", Name: "change",
						Outcome: provider.UpdateCompleted, Result: history.Payload(`"a"`),
					}
					if err := h.Provider.PutUpdateResults(t.Context(), known); err != nil {
						t.Fatal(err)
					}
					h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
				})
		})
	}
}

// A copy in the batch that accepts the update does not cause the result "forgotten".
func TestR27_copyInOneBatch_writesOneResult(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(_ context.Context, h *hub, in provider.Instance) {
		written := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if writesResult(c) {
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
			t.Errorf("got %d results written, want 1", written)
		}
	})
}

// Interleaving:
//  1. The validator rejects the update (or accepts it), and the commit fails.
//  2. SQS redelivers the message to a process whose validator decides differently.
//  3. Only the committed decision counts.
func TestR27_validatorDecidesDifferently_committedDecisionCounts(t *testing.T) {
	t.Parallel()
	for name, rejectsFirst := range map[string]bool{"rejected first": true, "accepted first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var validated atomic.Int64
			r := registry()
			perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
				err := perdure.SetUpdateHandler(ctx, "change", func(
					*perdure.OrchestrationContext, change,
				) (string, error) {
					return "done", nil
				},
					perdure.WithValidator(func(change) error {
						if first := validated.Add(1) == 1; first == rejectsFirst {
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
					t.Fatalf("got %d failed messages, want 1", len(lost))
				}
				h.wantNoResult(in, "u1")
				h.serveFor(time.Minute)
				want := provider.UpdateRejected
				if rejectsFirst {
					want = provider.UpdateCompleted
				}
				h.wantUpdated(in, "u1", want, "")
				if n := countKinds(h.events(in), history.UpdateRejected) + countKinds(h.events(in),
					history.UpdateAccepted); n != 1 || validated.Load() != 2 {
					t.Errorf("got %d decisions in history, and %d validations", n, validated.Load())
				}
				h.wantReplays(r, in)
				if validated.Load() != 2 {
					t.Error("the replay called the validator")
				}
			})
		})
	}
}

// Interleaving: the turn that rejects or completes an update is committed, and its process crashes before or after it
// writes the result. The redelivered message causes a redispatch.
func TestR27_processDiesAtResult_resultIsWritten(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			t.Parallel()
			intercept, crashed := crashOnce(after, writesResult)
			changes(t, simhub.Options{Intercept: intercept, Environments: 2}, changing{Events: 1},
				func(_ context.Context, h *hub, in provider.Instance) {
					h.update(in, "u1", change{Refuse: "no"})
					h.update(in, "u2", change{Say: "yes"})
					h.serveFor(10 * time.Minute)
					if !crashed.Load() {
						t.Fatal("no process has crashed")
					}
					h.wantUpdated(in, "u1", provider.UpdateRejected, "no after 0")
					h.wantUpdated(in, "u2", provider.UpdateCompleted, `"yes"`)
					h.raise(in, "e1", 1)
					h.finish(in)
					h.checkIdle()
				})
		})
	}
}

// A result cannot be written for some time. The messages of its turn and all later messages stay in the inbox until the
// result is written.
func TestR27_resultWriteFails_laterMessagesWait(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 1}, func(_ context.Context, h *hub, in provider.Instance) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if writesResult(c) {
				return simhub.ErrFailed
			}
			return next()
		})
		h.update(in, "u1", change{Say: "a"})
		h.raise(in, "e1", 1)
		h.serveFor(20 * time.Minute)
		h.wantNoResult(in, "u1")
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != `"a 1"` {
			t.Errorf("ended with %s, output %s", end.String(), end.Output)
		}
		h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a"`)
		h.checkIdle()
	})
}

// An update that arrives with the start is processed in the first turn, after the first wait of the code. A delayed
// start stores updates until the start time.
func TestR27_updateBeforeFirstTurn_isProcessedInFirstTurn(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"with the start": 0, "to a delayed start": time.Hour} {
		for _, size := range []int{0, 60 << 10} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{
					Environments: 2, Registry: addChanging(registry()),
				}, func(ctx context.Context, h *hub) {
					s := provider.Start{
						InstanceID: "i-1", Name: "changes", Input: encoded(t, changing{Events: 1}), StartID: "start-1",
					}
					if delay > 0 {
						s.StartAt = time.Now().Add(delay)
					}
					in := must(h.Provider.StartOrchestration(ctx, s))
					longText := "a" + static(1, size)
					for id := range 2 {
						h.update(in, fmt.Sprint("u", id), change{Say: longText})
						h.serveFor(time.Minute)
					}
					h.update(in, "u2", change{Refuse: "b"})
					time.Sleep(6 * time.Minute) // SQS has forgotten the deduplication ID of the first copy
					h.update(in, "u0", change{Say: "a copy"})
					h.serveFor(time.Minute)
					if delay > 0 {
						h.wantNoResult(in, "u0")
						h.serveFor(delay)
					}
					h.wantUpdated(in, "u0", provider.UpdateCompleted, `"`+longText+`"`)
					h.wantUpdated(in, "u1", provider.UpdateCompleted, `"`+longText+" "+longText+`"`)
					h.wantUpdated(in, "u2", provider.UpdateRejected, "b after 2")
					h.wantReplays(addChanging(registry()), in)
					h.raise(in, "e1", 1)
					h.finish(in)
					h.checkIdle()
				})
			})
		}
	}
}

// An instance that ends before its first turn never accepted its updates.
func TestR27_instanceEndsBeforeFirstTurn_updateIsNotAccepted(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: addChanging(registry())}, func(ctx context.Context, h *hub) {
		in := must(h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "changes", Input: encoded(t, changing{Events: 1}), StartID: "start-1",
			StartAt: time.Now().Add(time.Hour),
		}))
		h.update(in, "u1", change{Say: "a"})
		h.turns()
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "i-1"})
		h.turns()
		h.wantNoResult(in, "u1")
		if _, err := client.New(h.Provider).Update(ctx, "i-1", "change", change{},
			client.WithUpdateID("u1")); !errors.Is(err, client.ErrEnded) {
			t.Errorf("got error %v, want ErrEnded", err)
		}
		h.serveFor(2 * time.Hour)
		h.checkIdle()
	})
}

// Before the code sets its handler, updates are rejected. Later updates are accepted, even in the same batch and in
// each replay.
func TestR27_handlerSetLater_earlierUpdatesAreRejected(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{}, changing{Events: 2, Late: true},
		func(_ context.Context, h *hub, in provider.Instance) {
			h.update(in, "u1", change{Say: "early"})
			h.raise(in, "e1", 1)
			h.update(in, "u2", change{Say: "late"})
			h.turn(0)
			h.wantUpdated(in, "u1", provider.UpdateRejected, history.RejectedNoHandler)
			h.wantUpdated(in, "u2", provider.UpdateCompleted, `"1 late"`)
			h.wantReplays(addChanging(registry()), in)
			h.raise(in, "e2", 2)
			h.finish(in)
			h.checkIdle()
		})
}

// Waiting handlers run concurrently, and each continues when it can.
func TestR27_waitingHandlers_runConcurrently(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{Environments: 2}, changing{Events: 1, Done: true},
		func(_ context.Context, h *hub, in provider.Instance) {
			h.update(in, "u1", change{Say: "a", Until: "b"})
			h.serveFor(time.Minute)
			h.update(in, "u2", change{Say: "b", Until: "a", Wait: "go"})
			h.serveFor(5 * time.Minute) // a timer that fires as the hub stops may be redelivered
			h.wantUpdated(in, "u1", provider.UpdateCompleted, `"a b"`)
			h.wantNoResult(in, "u2")
			h.raise(in, "e1", 1)
			h.serveFor(time.Minute)
			h.wantStatus(in, provider.StatusRunning) // waits for its update handlers
			h.raiseGo(in)
			if end := h.finish(in); string(end.Output) != `"a b 1 b!"` {
				t.Errorf("ended with %s, output %s", end.String(), end.Output)
			}
			h.checkIdle()
		})
}
