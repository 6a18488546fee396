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
	"github.com/perdure/perdure/provider/outputs"
)

// startMessage returns the message with which a parent starts "chain".
func startMessage(h *hub, id, startID string) provider.Message {
	return provider.Message{
		Kind: provider.MessageStart, InstanceID: id, Name: "chain", Input: encoded(h.t, 1), StartID: startID,
		Parent: &history.Parent{InstanceID: "parent", ExecutionID: "px", EventID: 3},
	}
}

// endedChild runs the child "c" of start "s1" until it has reported its outcome, and returns the start.
func (h *hub) endedChild() provider.Message {
	h.t.Helper()
	m := startMessage(h, "c", "s1")
	m.Name = "nothing"
	h.send(m)
	h.turn(0)
	h.wantParentMessages("childOutcome")
	return m
}

// send sends messages to the inbox.
func (h *hub) send(ms ...provider.Message) {
	h.t.Helper()
	if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), ms...); err != nil {
		h.t.Fatal(err)
	}
}

// A start by message costs two writes, the first turn costs one, and neither reads anything.
func TestCost_startByMessage_readsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.send(startMessage(h, "c", "s1"))
		h.Cloud.ResetCounts()
		if failed := h.turn(0); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Error("the child did not start")
		}
		got := h.Cloud.Counts()
		if got["DynamoDB.GetItem"]+got["DynamoDB.Query"] != 0 || got["DynamoDB.TransactWriteItems"] != 0 ||
			got["DynamoDB.PutItem"] != 3 {
			t.Errorf("got calls %v, want three writes and no read", got)
		}
	})
}

// 1. A function writes the start of a child and crashes before the first turn.
// 2. SQS redelivers the start. The session finds its own instance and runs the first turn.
func TestR10_crashAfterTheStart_redeliveryRunsTheFirstTurn(t *testing.T) {
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
			t.Fatalf("got %d failed messages, want 1", len(failed))
		}
		h.interfere(nil)
		time.Sleep(time.Minute)
		if failed := h.turn(0); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Error("the first turn did not run")
		}
		if s := h.read(provider.Instance{InstanceID: "c"}).Status; s != provider.StatusRunning {
			t.Errorf("the child is %s, want running", s)
		}
	})
}

// A start is resent after the queue's deduplication interval, to a running instance and to an ended instance. It starts
// no second instance.
func TestR10_startIsRepeated_startsNoSecondInstance(t *testing.T) {
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
				t.Error("the repeated start failed")
			}
			if !done {
				h.complete(c, 1, 3)
				h.turn(0)
			}
		}
		if now := h.read(c); now.ExecutionID != c.ExecutionID || now.Status != provider.StatusCompleted {
			t.Errorf("got instance %+v, want the first one completed", now)
		}
		if n := len(h.workItems()); n != 1 {
			t.Errorf("got %d work items, want that of the first start", n)
		}
		h.events(c)
	})
}

// 1. A child has ended and is purged. Another instance has its ID.
// 2. The start of the child is redelivered. The session reports outcome_lost, because the outcome is unknown.
func TestR10_startOfAnEarlierIncarnationIsRedelivered_parentReceivesOutcomeLost(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		start := h.endedChild()
		h.purge("c")
		other := h.startAs("c", "sums", 0)
		h.turn(0)
		time.Sleep(6 * time.Minute) // beyond the deduplication interval of the queue
		h.send(start)
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("got failed records %v, want none", failed)
		}
		h.wantParentMessages("childOutcome " + history.TypeOutcomeLost)
		if now := h.read(other); now.ExecutionID != other.ExecutionID || now.Status != provider.StatusRunning {
			t.Errorf("got the later incarnation %+v, want it unchanged", now)
		}
	})
}

// The ID of a child is in use. The session records the rejected start before it responds to the parent. Otherwise, a
// frozen function could start a child that the parent does not wait for.
func TestR10_startIsRefused_isRecordedBeforeTheResponse(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		h.workItems()
		h.send(startMessage(h, in.InstanceID, "s2"))
		from := len(h.made())
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("the start failed")
		}
		var order []string
		for _, c := range h.made()[from:] {
			switch in := c.Input.(type) {
			case *dynamodb.UpdateItemInput:
				order = append(order, "record "+strings.Join(startIDsOf(in), " "))
			case *sqs.SendMessageBatchInput:
				order = append(order, "respond")
			}
		}
		if len(order) != 2 || order[0] != "record s2" || order[1] != "respond" {
			t.Errorf("got calls %v, want record s2, respond", order)
		}
		if items := h.workItems(); len(items) > 0 {
			t.Error("the refused child started")
		}
	})
}

// startIDsOf returns the start IDs that an update adds to an instance.
func startIDsOf(in *dynamodb.UpdateItemInput) []string {
	if set, ok := in.ExpressionAttributeValues[":start"].(*ddbtypes.AttributeValueMemberSS); ok {
		return set.Value
	}
	return nil
}

// A batch contains an event for an absent instance, its start, and further events. The event before the start is
// dropped.
func TestStart_messagesBeforeItInTheBatch_areDropped(t *testing.T) {
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
			t.Fatal("got failed messages, want none")
		}
		end, err := h.Provider.ReadTerminalEvent(t.Context(), h.read(c).ExecutionID)
		if err != nil || string(end.Output) != "1" {
			t.Errorf("ended with %s, %v, want 1", end.Output, err)
		}
	})
}

// The same batch is delivered for the second time.
func TestStart_batchIsRedelivered_earlierMessagesAreDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.raise(provider.Instance{InstanceID: "c"}, "too early", 100)
		h.send(startMessage(h, "c", "s1"))
		batch := h.receive(h.Provider.Config().InboxURL)
		for i := range batch {
			batch[i].ReceiveCount = 2 // the function crashed before any effect
		}
		if failed := h.Orchestrators[0].HandleRecords(ctx, batch); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Error("the child did not start")
		}
	})
}

// A child has ended, and its outcome could not be sent. The status shows the end only after the outcome was sent.
func TestR9_outcomeOfAChildIsNotSent_statusStaysRunning(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("parent", 1)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			s, ok := c.Input.(*sqs.SendMessageBatchInput)
			if ok && strings.Contains(*s.Entries[0].MessageBody, "childOutcome") {
				return errors.New("the network is unavailable")
			}
			return next()
		})
		h.turn(0) // of the parent
		h.turn(0) // of the child
		page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Name: "chain"})
		if err != nil || len(page.Instances) != 1 {
			t.Fatal(err, page)
		}
		child := page.Instances[0]
		h.complete(child, 1, 3)
		if failed := h.turn(0); len(failed) != 1 || h.read(child).Status != provider.StatusRunning {
			t.Errorf("got %d failed messages, the child is %s; want 1, running", len(failed), h.read(child).Status)
		}
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != "1" || h.read(child).Status != provider.StatusCompleted {
			t.Errorf("the parent ended with %s, the child is %s; want 1, completed", end.Output, h.read(child).Status)
		}
	})
}

// The outcome of a child arrives after the parent has continued as new or ended. It is dropped.
func TestChild_parentContinuedAsNew_outcomeIsDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "1", 1)
		h.raise(in, "2", 2)
		h.turn(0)
		response := outputs.ChildOutcome("c", &history.Parent{
			InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, EventID: 3,
		})
		response.Result = encoded(t, 5)
		h.send(response)
		if failed := h.turn(0); len(failed) > 0 {
			t.Error("the outcome failed")
		}
		h.raise(in, "3", 0)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s, want 3", end.Output)
		}
	})
}

// The parent waits for the retry interval with a timer. Each attempt is a separate instance.
func TestChild_failsWithARetryPolicy_nextAttemptIsANewInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("failing-child", 3)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Fatalf("ended with %s", end.String())
		}
		first := in.InstanceID + ":" + in.ExecutionID + ":3"
		for id, want := range map[string]provider.RuntimeStatus{
			first: provider.StatusFailed, first + "~2": provider.StatusFailed, first + "~3": provider.StatusCompleted,
		} {
			child, err := h.Provider.ReadInstance(ctx, id)
			if err != nil || child.Status != want || child.Parent == nil || child.Parent.InstanceID != in.InstanceID {
				t.Errorf("child %s is %s, %v, want %s", id, child.Status, err, want)
			}
		}
	})
}

// delayed starts "sums" with a delay of an hour.
func (h *hub) delayed() provider.Instance {
	h.t.Helper()
	s := provider.Start{
		InstanceID: "i-1", Name: "sums", Input: encoded(h.t, 0), StartID: "s", StartAt: time.Now().Add(time.Hour),
	}
	in, err := h.Provider.StartOrchestration(h.t.Context(), s)
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// Messages that arrive before the start time are committed but do not run the code. The sweeper sends no wake.
func TestR11_messagesBeforeDelayedStart_areConsumedByFirstTurn(t *testing.T) {
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
			if woken, err := h.Renewer.Sweep(ctx); woken > 0 || err != nil {
				t.Errorf("the sweeper woke %d instances, %v; want none", woken, err)
			}
		}
		for _, e := range h.events(in) {
			if e.Kind == history.ExternalEventSubscribed {
				t.Error("the code ran before the start time")
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
					t.Errorf("the code ran %v before the start time", in.StartAt.Sub(e.Time))
				}
			}
		}
		if !began {
			t.Error("the code did not run within two seconds of the start time")
		}
		h.raise(in, "2", 2)
		h.raise(in, "3", 0)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s, want 3", end.Output)
		}
	})
}

// The clock of the function that runs the turn is behind the clock of the function that fired the timer. The turn uses
// the time of the timer. Otherwise, it would drop the only message that starts the instance.
func TestR11_clockIsSlowAtDelayedStart_timerStartsTheInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.delayed()
		time.Sleep(time.Hour - time.Second)
		h.send(provider.Message{
			Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 1,
		})
		h.turn(0)
		if s := h.read(in).Status; s != provider.StatusRunning {
			t.Errorf("the instance is %s, want running", s)
		}
	})
}

// A client sends the timer of a delayed start before it writes the start. If the client crashes in between, no start
// lacks its timer.
func TestR11_delayedStartByClient_sendsTheTimerBeforeTheWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.delayed()
		got := h.operations(0)
		if len(got) < 2 || got[len(got)-2] != "SendMessageBatch" || got[len(got)-1] != "TransactWriteItems" {
			t.Errorf("got calls %v, want the timer before the write", got)
		}
	})
}

func TestDelayedStart_terminated_ends(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.delayed()
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "not any more"})
		h.turn(0)
		if s := h.read(in).Status; s != provider.StatusTerminated {
			t.Errorf("the instance is %s, want terminated", s)
		}
		if end := h.finish(in); end.Kind != history.OrchestrationTerminated {
			t.Errorf("ended with %s", end.Kind)
		}
	})
}

// In a rollout, an old environment receives a message of a kind that only new environments support. It releases the
// message several times before the message becomes a dead letter.
func TestMessage_unknownKind_isReleasedForANewerBuild(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		inbox := h.Provider.Config().InboxURL
		entry := sqstypes.SendMessageBatchRequestEntry{
			Id: aws.String("0"), MessageBody: aws.String(`{"v":1,"kind":"of a later release","instanceId":"i-1"}`),
			MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
		}
		_, err := h.Cloud.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
			QueueUrl: &inbox, Entries: []sqstypes.SendMessageBatchRequestEntry{entry},
		})
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
			t.Errorf("got %d released deliveries and %d dead letters, want 5 and 1", deliveries, len(dead))
		}
	})
}
