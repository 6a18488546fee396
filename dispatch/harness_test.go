package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// inc is the activity of most tests.
func inc(_ context.Context, n int) (int, error) { return n + 1, nil }

// registry returns the orchestrations of most tests.
func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "chain", chain)
	perdure.AddOrchestration(r, "fan", fan)
	perdure.AddOrchestration(r, "nothing", func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil })
	perdure.AddOrchestration(r, "first-of-two", firstOfTwo)
	perdure.AddOrchestration(r, "timer", func(ctx *perdure.OrchestrationContext, d time.Duration) (time.Time, error) {
		return perdure.CreateTimer(ctx, d).Await(ctx)
	})
	perdure.AddActivity(r, "flaky", func(ctx context.Context, succeedsAt int) (int, error) {
		if n := perdure.ActivityInfoFrom(ctx).Attempt; n < succeedsAt {
			return 0, fmt.Errorf("attempt %d of %d", n, succeedsAt)
		}
		return succeedsAt, nil
	})
	perdure.AddOrchestration(r, "retries", func(ctx *perdure.OrchestrationContext, at int) (int, error) {
		policy := perdure.RetryPolicy{InitialInterval: time.Minute}
		return perdure.CallActivityByName[int](ctx, "flaky", at, perdure.WithRetry(policy)).Await(ctx)
	})
	perdure.AddOrchestration(r, "begins-once", func(ctx *perdure.OrchestrationContext, n int) (sum int, err error) {
		for range n {
			call := perdure.CallActivity(ctx, inc, sum, perdure.AtMostOnce(), perdure.WithRetry(perdure.RetryPolicy{}))
			if sum, err = call.Await(ctx); err != nil {
				return 0, err
			}
		}
		return sum, nil
	})
	perdure.AddOrchestration(r, "statuses", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for i := range n {
			ctx.SetCustomStatus(i + 1)
			if _, err := perdure.CallActivity(ctx, inc, i).Await(ctx); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	addFamily(r)
	addInline(r)
	perdure.AddOrchestration(r, "pauses", pausesWhile)
	perdure.AddOrchestration(r, "updates", updatesWhile)
	addCalling(r)
	perdure.AddActivity(r, "hand-over", func(context.Context, bool) (string, error) { return "", perdure.ErrPending })
	perdure.AddOrchestration(r, "hands-over", waitsForToken)
	perdure.AddOrchestration(r, "no-queue", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere")).Call(ctx, 1).Await(ctx)
		return "continued after: " + err.Error(), nil
	})
	return r
}

// chain calls inc n times in sequence.
func chain(ctx *perdure.OrchestrationContext, n int) (int, error) {
	v := 0
	for range n {
		var err error
		if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

// fan calls inc n times concurrently.
func fan(ctx *perdure.OrchestrationContext, n int) (int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallActivity(ctx, inc, i))
	}
	return sumOf(ctx, fs)
}

// sumOf waits for all results and returns their sum.
func sumOf(ctx *perdure.OrchestrationContext, fs []*perdure.Future[int]) (int, error) {
	if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
		return 0, err
	}
	sum := 0
	for _, f := range fs {
		v, _ := f.Await(ctx)
		sum += v
	}
	return sum, nil
}

// firstOfTwo ends when the first of two activities completes.
func firstOfTwo(ctx *perdure.OrchestrationContext, n int) (int, error) {
	return perdure.WhenAny(ctx, perdure.CallActivity(ctx, inc, n), perdure.CallActivity(ctx, inc, n))
}

// hub is a task hub in virtual time. Tests run single turns or the whole hub.
type hub struct {
	*simhub.Hub

	t *testing.T
	// calls lists the calls of functions and the test, in order.
	mu    sync.Mutex
	calls []simaws.Call
	// fault intercepts every call if it is set. Polls and renewals call it while a test changes it.
	fault atomic.Pointer[simaws.Interceptor]
}

// interfere intercepts every later call with fault. If fault is nil, calls are not intercepted.
func (h *hub) interfere(fault simaws.Interceptor) {
	if fault == nil {
		h.fault.Store(nil)
		return
	}
	h.fault.Store(&fault)
}

// inBubble runs f with a hub in virtual time.
func inBubble(t *testing.T, o simhub.Options, f func(ctx context.Context, h *hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &hub{t: t}
		if o.Registry == nil {
			o.Registry = registry()
		}
		if testing.Verbose() && o.Logger == nil {
			o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
		}
		inner := o.Intercept
		o.Intercept = func(ctx context.Context, c simaws.Call, next func() error) error {
			h.mu.Lock()
			h.calls = append(h.calls, c)
			h.mu.Unlock()
			if fault := h.fault.Load(); fault != nil {
				return (*fault)(ctx, c, next)
			}
			if inner != nil {
				return inner(ctx, c, next)
			}
			return next()
		}
		var err error
		if h.Hub, err = simhub.New(o); err != nil {
			t.Fatal(err)
		}
		h.calls = nil
		f(t.Context(), h)
		h.Close()
		synctest.Wait()
	})
}

// start starts the instance i-1 without running a turn. Its wake is in the inbox.
func (h *hub) start(name string, input any) provider.Instance {
	h.t.Helper()
	in, err := h.Provider.StartOrchestration(h.t.Context(), provider.Start{
		InstanceID: "i-1", Name: name, Input: encoded(h.t, input), StartID: "start-1",
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// encoded returns v as a JSON payload.
func encoded(t *testing.T, v any) history.Payload {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return history.Payload(b)
}

// receive receives the visible messages of a queue.
func (h *hub) receive(queueURL string) []provider.Record {
	h.t.Helper()
	out, err := h.Cloud.Queues.ReceiveMessage(h.t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queueURL, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return simhub.Records(out.Messages)
}

// turn passes the visible inbox records to one of the orchestrator's environments, and deletes the finished records.
func (h *hub) turn(environment int) (failed []string) {
	h.t.Helper()
	records := h.receive(h.Provider.Config().InboxURL)
	failed = h.Orchestrators[environment].HandleRecords(h.t.Context(), records)
	for _, r := range records {
		if !slices.Contains(failed, r.ID) {
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, r)
		}
	}
	return failed
}

// awaitCancelRecord waits until a cancel of an activity is committed.
func (h *hub) awaitCancelRecord(in provider.Instance) {
	h.t.Helper()
	for {
		cancels, _, err := h.Provider.ReadCancels(h.t.Context(), in.ExecutionID, 0)
		if err != nil {
			h.t.Error(err)
		}
		if err != nil || len(cancels) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// complete sends the outcomes of activities to the inbox in one message. Segment 0 omits the segment of the activities.
func (h *hub) complete(in provider.Instance, segment int64, ids ...int64) {
	h.t.Helper()
	m := provider.Message{
		Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
		Segment: segment,
	}
	for _, id := range ids {
		m.Outcomes = append(m.Outcomes, provider.ActivityOutcome{
			ActivityID: id, Attempt: 1, Result: history.Payload("1"),
		})
	}
	if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), m); err != nil {
		h.t.Fatal(err)
	}
}

// workItems receives the visible work items.
func (h *hub) workItems() []provider.LockedWorkItem {
	h.t.Helper()
	items, bad := h.Provider.DecodeWorkItems(h.t.Context(), h.receive(h.Provider.Config().WorkQueues["default"]))
	if len(bad) > 0 {
		h.t.Fatal(bad)
	}
	return items
}

// serveFor runs the functions for a duration of virtual time.
func (h *hub) serveFor(d time.Duration) { h.ServeFor(h.t.Context(), d) }

// finish runs the functions for a day of virtual time, and returns the end event of the instance.
func (h *hub) finish(in provider.Instance) history.Event {
	h.t.Helper()
	h.serveFor(24 * time.Hour)
	now, err := h.Provider.ReadInstance(h.t.Context(), in.InstanceID)
	if err != nil {
		h.t.Fatal(err)
	}
	end, err := h.Provider.ReadTerminalEvent(h.t.Context(), now.ExecutionID)
	if err != nil {
		h.t.Fatalf("the instance has not ended: %v\n%v", err, h.events(now))
	}
	return end
}

// checkIdle fails the test unless all instances have ended with a valid history, and all queues are empty.
func (h *hub) checkIdle() {
	h.t.Helper()
	if err := h.CheckIdle(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// events returns the history of an instance. It fails the test if the history has gaps, settles an ID twice, or has
// events after the end.
func (h *hub) events(in provider.Instance) []history.Event {
	h.t.Helper()
	var events []history.Event
	for e, err := range h.Provider.ReadHistory(h.t.Context(), in.InstanceID, in.ExecutionID, 0) {
		if err != nil {
			h.t.Fatal(err)
		}
		events = append(events, e)
	}
	if err := simhub.CheckLog(events); err != nil {
		h.t.Error(err)
	}
	return events
}

// wantInstances fails the test unless the hub has want instances.
func (h *hub) wantInstances(want int) {
	h.t.Helper()
	page, err := h.Provider.ListInstances(h.t.Context(), provider.ListQuery{Limit: 1000})
	if err != nil || len(page.Instances) != want {
		h.t.Errorf("got %d instances, %v, want %d", len(page.Instances), err, want)
	}
}

// item reads an item of the table.
func (h *hub) item(pk, sk string) map[string]ddbtypes.AttributeValue {
	h.t.Helper()
	out, err := h.Cloud.Table.GetItem(h.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("perdure"), ConsistentRead: aws.Bool(true),
		Key: map[string]ddbtypes.AttributeValue{
			"pk": &ddbtypes.AttributeValueMemberS{Value: pk}, "sk": &ddbtypes.AttributeValueMemberS{Value: sk},
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out.Item
}

// text returns a string attribute of an item, or "" if there is none.
func text(item map[string]ddbtypes.AttributeValue, name string) string {
	v, _ := item[name].(*ddbtypes.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// createsInstance reports whether a call writes a new instance. Its first segment has been written before.
func createsInstance(c simaws.Call) bool {
	put, ok := c.Input.(*dynamodb.PutItemInput)
	return ok && text(put.Item, "sk") == "i"
}

// made returns the calls so far.
func (h *hub) made() []simaws.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// operations returns the names of the calls since the given index.
func (h *hub) operations(from int) []string {
	var ops []string
	for _, c := range h.made()[from:] {
		if c.Operation != "DeleteMessage" { // deleteAsMapping's
			ops = append(ops, c.Operation)
		}
	}
	return ops
}

// crashOnce kills the first invocation that makes a call for which when returns true, before or after the call.
func crashOnce(after bool, when func(c simaws.Call) bool) (intercept simaws.Interceptor, crashed *atomic.Bool) {
	crashed = &atomic.Bool{}
	return simhub.Crash(func(c simaws.Call) (bool, bool) {
		hit := when(c) && crashed.CompareAndSwap(false, true)
		return hit && !after, hit && after
	}), crashed
}

// must returns made, and panics if err is not nil.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
