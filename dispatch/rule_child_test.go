package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// startMessage is a start of "chain" as a parent sends it.
func startMessage(h *hub, id, startID string) provider.Message {
	return provider.Message{
		Kind: provider.MessageStart, InstanceID: id, Name: "chain", Input: encoded(h.t, 1), StartID: startID,
		Parent: &history.Parent{InstanceID: "parent", ExecutionID: "px", EventID: 3},
	}
}

// endedChild runs the child "c" of start "s1" to its end, of which its parent is told, and returns its start.
func (h *hub) endedChild() provider.Message {
	h.t.Helper()
	m := startMessage(h, "c", "s1")
	m.Name = "nothing"
	h.send(m)
	h.turn(0)
	h.wantTold("childOutcome")
	return m
}

func (h *hub) send(ms ...provider.Message) {
	h.t.Helper()
	if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), ms...); err != nil {
		h.t.Fatal(err)
	}
}

// A start is two writes and a first turn: nothing is read.
func TestAStartMessageReadsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.send(startMessage(h, "c", "s1"))
		h.Cloud.ResetCounts()
		if failed := h.turn(0); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Error("it did not start")
		}
		if got := h.Cloud.Counts(); got["DynamoDB.GetItem"]+got["DynamoDB.Query"] != 0 || got["DynamoDB.TransactWriteItems"] != 0 || got["DynamoDB.PutItem"] != 3 {
			t.Errorf("calls %v", got)
		}
	})
}

// Interleaving: the function dies after the start and before the first turn. The message comes again, finds its own
// instance, and runs the first turn that nobody has run.
func TestR10AStartThatComesAgainRunsTheFirstTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.send(startMessage(h, "c", "s1"))
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if put, ok := c.Input.(*dynamodb.PutItemInput); ok && text(put.Item, "sk") == "h#0000000001" {
				return simhub.ErrCrashed
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 {
			t.Fatalf("%d messages failed", len(failed))
		}
		h.interfere(nil)
		time.Sleep(time.Minute)
		if failed := h.turn(0); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Error("the first turn did not run")
		}
		if s := h.read(provider.Instance{InstanceID: "c"}).Status; s != provider.StatusRunning {
			t.Errorf("it is %s", s)
		}
	})
}

// Interleaving: a start is sent again, after the queue has forgotten the first, to an instance that runs, and to one that is over.
func TestR10ARepeatedStartNeverStartsAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		c := provider.Instance{InstanceID: "c"}
		h.send(startMessage(h, "c", "s1"))
		h.turn(0)
		c = h.read(c)
		for _, done := range []bool{false, true} {
			time.Sleep(6 * time.Minute)
			h.send(startMessage(h, "c", "s1"))
			if failed := h.turn(0); len(failed) > 0 {
				t.Error("it failed")
			}
			if !done {
				h.complete(c, 1, 3)
				h.turn(0)
			}
		}
		if now := h.read(c); now.ExecutionID != c.ExecutionID || now.Status != provider.StatusCompleted {
			t.Errorf("instance %+v", now)
		}
		if n := len(h.workItems()); n != 1 {
			t.Errorf("%d work items, want that of the first start", n)
		}
		h.events(c)
	})
}

// A start is delivered again after its instance was purged, when another instance has the ID. The child has run, but
// nobody knows any more how it ended.
func TestR10_startOfAPastLifeComesAgain_parentIsToldThatItsOutcomeIsLost(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		start := h.endedChild()
		h.purge("c")
		other := h.startAs("c", "sums", 0)
		h.turn(0)
		time.Sleep(6 * time.Minute) // the queue has forgotten it
		h.send(start)
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("failed %v", failed)
		}
		h.wantTold("childOutcome " + history.TypeOutcomeLost)
		if now := h.read(other); now.ExecutionID != other.ExecutionID || now.Status != provider.StatusRunning {
			t.Errorf("the other life: %+v", now)
		}
	})
}

// An id in use: the start is remembered first, and then the parent is told. The other way round a function that was frozen in
// between could start what its parent has given up.
func TestR10ARefusedStartIsRememberedBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		h.workItems()
		h.send(startMessage(h, in.InstanceID, "s2"))
		from := len(h.made())
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("it failed")
		}
		var order []string
		for _, c := range h.made()[from:] {
			switch in := c.Input.(type) {
			case *dynamodb.UpdateItemInput:
				order = append(order, "remember "+strings.Join(setOf(in), " "))
			case *sqs.SendMessageBatchInput:
				order = append(order, "answer")
			}
		}
		if len(order) != 2 || order[0] != "remember s2" || order[1] != "answer" {
			t.Errorf("calls %v", order)
		}
		if items := h.workItems(); len(items) > 0 {
			t.Error("it was started")
		}
	})
}

func setOf(in *dynamodb.UpdateItemInput) []string {
	if set, ok := in.ExpressionAttributeValues[":start"].(*ddbtypes.AttributeValueMemberSS); ok {
		return set.Value
	}
	return nil
}

// Interleaving: messages for an instance that is not there yet stand before its start in one batch, and others behind it. Those
// before it are nobody's.
func TestMessagesBeforeAStartAreNobodys(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		c := provider.Instance{InstanceID: "c"}
		m := startMessage(h, "c", "s1")
		m.Name, m.Input = "sums", encoded(t, 0)
		h.raise(c, "too early", 100)
		h.send(m)
		h.raise(c, "1", 1)
		h.raise(c, "2", 0)
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("failed")
		}
		if end, err := h.Provider.ReadTerminalEvent(t.Context(), h.read(c).ExecutionID); err != nil || string(end.Output) != "1" {
			t.Errorf("ended with %s, %v", end.Output, err)
		}
	})
}

// Interleaving: the same, when the batch is delivered for the second time.
func TestMessagesBeforeAStartAreNobodysTheSecondTime(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.raise(provider.Instance{InstanceID: "c"}, "too early", 100)
		h.send(startMessage(h, "c", "s1"))
		batch := h.receive(h.Provider.Config().InboxURL)
		for i := range batch {
			batch[i].ReceiveCount = 2 // the function died before it did anything
		}
		if failed := h.Orchestrators[0].HandleRecords(ctx, batch); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Error("it was not started")
		}
	})
}

// Interleaving: the child is over, its answer could not be sent. It is not over, for all to see, until it could.
func TestR9TheParentIsToldBeforeTheChildIsOver(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("parent", 1)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if s, ok := c.Input.(*sqs.SendMessageBatchInput); ok && strings.Contains(*s.Entries[0].MessageBody, "childOutcome") {
				return errors.New("the network is gone")
			}
			return next()
		})
		h.turn(0) // the parent's
		h.turn(0) // the child's
		page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Name: "chain"})
		if err != nil || len(page.Instances) != 1 {
			t.Fatal(err, page)
		}
		child := page.Instances[0]
		h.complete(child, 1, 3)
		if failed := h.turn(0); len(failed) != 1 || h.read(child).Status != provider.StatusRunning {
			t.Errorf("%d messages failed, the child is %s", len(failed), h.read(child).Status)
		}
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != "1" || h.read(child).Status != provider.StatusCompleted {
			t.Errorf("ended with %s, the child is %s", end.Output, h.read(child).Status)
		}
	})
}

// A child outlives its parent, and its answer is nobody's: the parent continued as new meanwhile, or is over.
func TestAnAnswerForAParentThatMovedOnIsDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "1", 1)
		h.raise(in, "2", 2)
		h.turn(0)
		answer := provider.ChildOutcome("c", &history.Parent{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, EventID: 3})
		answer.Result = encoded(t, 5)
		h.send(answer)
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("it failed")
		}
		h.raise(in, "3", 0)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s", end.Output)
		}
	})
}

// The policy's wait is a timer of the parent; each attempt is an instance of its own.
func TestAFailedChildIsTriedAsANewInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("failing-child", 3)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Fatalf("ended with %s", end.String())
		}
		first := in.InstanceID + ":" + in.ExecutionID + ":3"
		for id, want := range map[string]provider.RuntimeStatus{first: provider.StatusFailed, first + "~2": provider.StatusFailed, first + "~3": provider.StatusCompleted} {
			if child, err := h.Provider.ReadInstance(ctx, id); err != nil || child.Status != want || child.Parent == nil || child.Parent.InstanceID != in.InstanceID {
				t.Errorf("%s is %s, %v", id, child.Status, err)
			}
		}
	})
}

// delayed starts "sums" an hour from now.
func (h *hub) delayed() provider.Instance {
	h.t.Helper()
	s := provider.Start{InstanceID: "i-1", Name: "sums", Input: encoded(h.t, 0), StartID: "s", StartAt: time.Now().Add(time.Hour)}
	in, err := h.Provider.StartOrchestration(h.t.Context(), s)
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// What comes before its time is kept for a delayed start, and does not start it; nor does the watch.
func TestR11ADelayedStartWaitsAndKeepsWhatComes(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.delayed()
		serving, stop := context.WithCancel(ctx)
		served := make(chan struct{})
		go func() { defer close(served); h.Cloud.Serve(serving) }()
		for minute := range 55 {
			if minute == 40 {
				h.raise(in, "1", 1)
			}
			time.Sleep(time.Minute)
			if woken, err := h.Timekeeper.Sweep(ctx); woken > 0 || err != nil {
				t.Errorf("the watch woke it, %v", err)
			}
		}
		for _, e := range h.events(in) {
			if e.Kind == history.ExternalEventSubscribed {
				t.Error("its code ran early")
			}
		}
		time.Sleep(5*time.Minute + 2*time.Second)
		stop()
		<-served
		began := false
		for _, e := range h.events(in) {
			if e.Kind == history.ExternalEventSubscribed {
				began = true
				if e.Time.Before(in.StartAt) {
					t.Errorf("it began %v early", in.StartAt.Sub(e.Time))
				}
			}
		}
		if !began {
			t.Error("two seconds after its time it has not begun")
		}
		h.raise(in, "2", 2)
		h.raise(in, "3", 0)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s", end.Output)
		}
	})
}

// Interleaving: the clock of the function that runs the turn is behind that of the one that fired the timer. Its time is then
// taken for what it must be, else the only message that would ever start the instance is dropped.
func TestR11ADelayedStartBeginsWhenItsTimerSaysSo(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.delayed()
		time.Sleep(time.Hour - time.Second)
		h.send(provider.Message{Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 1})
		h.turn(0)
		if s := h.read(in).Status; s != provider.StatusRunning {
			t.Errorf("it is %s", s)
		}
	})
}

// Interleaving: the client dies between its two calls. The timer was sent first, so there is no start without one.
func TestR11ADelayedStartSendsItsTimerFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.delayed()
		if got := h.operations(0); len(got) < 2 || got[len(got)-2] != "SendMessageBatch" || got[len(got)-1] != "TransactWriteItems" {
			t.Errorf("calls %v", got)
		}
	})
}

func TestADelayedStartCanBeTerminated(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.delayed()
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "not any more"})
		h.turn(0)
		if s := h.read(in).Status; s != provider.StatusTerminated {
			t.Errorf("it is %s", s)
		}
		if end := h.finish(in); end.Kind != history.OrchestrationTerminated {
			t.Errorf("ended with %s", end.Kind)
		}
	})
}

// Interleaving: while a release is rolled out, an old environment is given a message of a kind that only new ones know. It is left
// for them; only what nobody takes is set aside.
func TestAMessageOfAnUnknownKindIsLeftForANewerBuild(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		inbox := h.Provider.Config().InboxURL
		_, err := h.Cloud.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &inbox, Entries: []sqstypes.SendMessageBatchRequestEntry{{
			Id: aws.String("0"), MessageBody: aws.String(`{"v":1,"kind":"of a later release","instanceId":"i-1"}`),
			MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		deliveries := 0
		for range 20 {
			time.Sleep(10 * time.Minute)
			if failed := h.turn(0); len(failed) == 0 {
				break
			}
			deliveries++
		}
		if dead := h.receive("sim://inbox-dead.fifo"); deliveries != 5 || len(dead) != 1 {
			t.Errorf("left %d times, then %d dead letters", deliveries, len(dead))
		}
	})
}
