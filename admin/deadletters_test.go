package admin_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// The tests in this file cover these interleavings of dead-letter operations:
//   - The process crashes or a call fails between the send and the delete of a redrive. The dead letter was sent, and
//     is still in the queue.
//   - The first send of the message was less than five minutes ago, so SQS treats the redrive as a duplicate.
//   - Two redrives run at the same time.
//   - The sweeper receives dead letters during a list, or a list crashes and leaves dead letters invisible.
//   - One dead letter of a batch cannot be redriven because it belongs to another hub.
//   - One instance has more dead letters than a FIFO queue returns at once.

// deadLetterHub is a hub in virtual time with an instance that waits for events.
type deadLetterHub struct {
	*simhub.Hub
	*client.Client
	*operator

	t *testing.T
	// fault, if set, intercepts every call.
	fault simaws.Interceptor
}

// withLetters runs f on a hub whose instance "i" receives want events "e" and returns their sum.
func withLetters(t *testing.T, want int, f func(ctx context.Context, h *deadLetterHub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "inc", func(_ context.Context, n int) (int, error) { return n + 1, nil })
		perdure.AddOrchestration(r, "sum", func(ctx *perdure.OrchestrationContext, _ int) (sum int, err error) {
			for range want {
				n, err := perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
				if err != nil {
					return sum, err
				}
				sum += n
			}
			return sum, nil
		})
		h := &deadLetterHub{t: t}
		hub, err := simhub.New(simhub.Options{
			Registry: r,
			Intercept: func(ctx context.Context, c simaws.Call, next func() error) error {
				if h.fault != nil {
					return h.fault(ctx, c, next)
				}
				return next()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.Hub, h.Client, h.operator = hub, client.New(hub.Provider), admin.New(hub.Provider)
		if _, err := h.Start(t.Context(), "sum", 0, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(t.Context(), time.Second)
		f(t.Context(), h)
		h.Close()
		synctest.Wait()
	})
}

// failMessages raises events with the value 1 and turns these events into dead letters with a reason.
// An empty reason simulates a dead letter that SQS moved, because SQS stores no reason.
func (h *deadLetterHub) failMessages(ctx context.Context, events int, reason string) {
	h.t.Helper()
	for range events {
		if err := h.RaiseEvent(ctx, "i", "e", 1); err != nil {
			h.t.Fatal(err)
		}
	}
	h.failAll(ctx, reason)
}

// failAll turns all messages of the inbox into dead letters.
func (h *deadLetterHub) failAll(ctx context.Context, reason string) {
	h.t.Helper()
	url := h.Provider.Config().InboxURL
	for {
		out, err := h.Cloud.Queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return
		}
		for _, r := range simhub.Records(out.Messages) {
			err := h.Provider.DeadLetter(ctx, provider.QueueInbox, provider.Unreadable{
				Record: r, Err: errors.New(reason),
			})
			if err == nil {
				err = h.Provider.DeleteRecords(ctx, provider.QueueInbox, r)
			}
			if err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// left returns the number of dead letters, both visible and in flight.
func (h *deadLetterHub) left(ctx context.Context) (n int) {
	h.t.Helper()
	counts, err := h.CountDeadLetters(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range counts {
		n += c.Visible + c.InFlight
	}
	return n
}

// wantSum runs the hub and checks that the instance completed with the sum want.
func (h *deadLetterHub) wantSum(ctx context.Context, want int) {
	h.t.Helper()
	h.ServeFor(ctx, time.Minute)
	s, err := h.Status(ctx, "i")
	if err != nil || s.Status != client.StatusCompleted || string(s.Output) != fmt.Sprint(want) {
		h.t.Errorf("the instance is %s with output %s, error %v; want output %d", s.Status, s.Output, err, want)
	}
}

// A redrive loses no message if any of its calls fails, or if the response of a call is lost.
// If the operator repeats the redrive soon, the redrive sends no message twice.
func TestRedriveDeadLetters_anyCallFails_losesNoMessage(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	count := func(_ context.Context, _ simaws.Call, next func() error) error { calls.Add(1); return next() }
	withLetters(t, 3, func(ctx context.Context, h *deadLetterHub) {
		h.failMessages(ctx, 3, "corrupt: for now")
		h.fault = count
		if r, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{}); err != nil || r.Done != 3 || !r.Complete {
			t.Fatalf("redrive without faults: got %+v, error %v", r, err)
		}
	})
	for n := range calls.Load() {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(n, after), func(t *testing.T) {
				t.Parallel()
				withLetters(t, 3, func(ctx context.Context, h *deadLetterHub) {
					h.failMessages(ctx, 3, "corrupt: for now")
					var calls atomic.Int64
					dead, stop := context.WithCancel(ctx)
					h.fault = func(_ context.Context, _ simaws.Call, next func() error) error {
						at := calls.Add(1) - 1
						if at < n {
							return next()
						}
						if at == n && after {
							_ = next()
						}
						stop()
						return errors.New("the process has died")
					}
					_, _ = h.RedriveDeadLetters(dead, admin.DeadLetterQuery{})
					h.fault = nil
					time.Sleep(3 * time.Minute) // a crashed process does not release its dead letters
					if _, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{}); err != nil {
						t.Fatal(err)
					}
					h.wantSum(ctx, 3)
					if left := h.left(ctx); left > 0 {
						t.Errorf("%d dead letters remain; want 0", left)
					}
				})
			})
		}
	}
}

// A redriven message arrives even if its first send was moments ago.
// Two redrives at the same time send each message once.
func TestRedriveDeadLetters_twoConcurrentCalls_sendEachMessageOnce(t *testing.T) {
	t.Parallel()
	withLetters(t, 25, func(ctx context.Context, h *deadLetterHub) {
		h.failMessages(ctx, 25, "corrupt: for now") // more messages of one instance than a FIFO queue returns at once
		results := make(chan admin.DeadLetterResult, 2)
		for range 2 {
			go func() {
				r, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{ReasonPrefix: "corrupt:"})
				if err != nil {
					t.Error(err)
				}
				results <- r
			}()
		}
		one, other := <-results, <-results
		if one.Done+other.Done != 25 {
			t.Errorf("the two redrives sent %d and %d messages; want 25 in total", one.Done, other.Done)
		}
		h.wantSum(ctx, 25)
	})
}

// A list returns dead letters without removing them, and makes them visible again immediately.
func TestDeadLetters_listedRepeatedly_stayInTheQueue(t *testing.T) {
	t.Parallel()
	withLetters(t, 1, func(ctx context.Context, h *deadLetterHub) {
		h.failMessages(ctx, 4, "poison: it dies")
		for range 3 {
			found, err := h.DeadLetters(ctx, admin.DeadLetterQuery{InstanceID: "i"}, 0)
			if err != nil || len(found.Items) != 4 || !found.Complete {
				t.Fatalf("the list has %d dead letters, error %v; want 4", len(found.Items), err)
			}
			d := found.Items[0]
			if d.Queue != provider.QueueInbox || d.Subject.Kind != provider.MessageEventRaised ||
				d.Subject.Name != "e" || !strings.HasPrefix(d.Reason, "poison:") || d.SentAt.IsZero() {
				t.Errorf("the first dead letter is %+v; want the raised event e with the reason poison", d)
			}
		}
		for q, want := range map[*admin.DeadLetterQuery]int{
			{InstanceID: "j"}: 0, {ReasonPrefix: "corrupt:"}: 0, {Queue: "timers"}: 0,
			{Queue: "inbox", ReasonPrefix: "poison:"}: 4,
		} {
			if found, err := h.DeadLetters(ctx, *q, 0); err != nil || len(found.Items) != want {
				t.Errorf("query %+v returns %d dead letters, error %v", q, len(found.Items), err)
			}
		}
		if found, err := h.DeadLetters(ctx, admin.DeadLetterQuery{}, 2); err != nil || len(found.Items) != 2 ||
			found.Complete {
			t.Errorf("the list with limit 2 is %+v, error %v", found, err)
		}
		var wrong *provider.FieldError
		if _, err := h.DeadLetters(ctx, admin.DeadLetterQuery{Queue: "nowhere"}, 0); !errors.As(err, &wrong) ||
			wrong.Field != "queue" {
			t.Errorf("the list of an unknown queue returns the error %v; want a FieldError for queue", err)
		}
	})
}

// A redrive skips dead letters that were already handled, unless the operator forces the redrive.
// A drop removes only the selected dead letters.
func TestRedriveDeadLetters_poisonOrRecoveredLetter_isSkippedUnlessForced(t *testing.T) {
	t.Parallel()
	withLetters(t, 2, func(ctx context.Context, h *deadLetterHub) {
		h.failMessages(ctx, 1, "poison: it dies")
		h.failMessages(ctx, 1, "picked up: the message is in the inbox again")
		h.failMessages(ctx, 2, "corrupt: for now")
		if r, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{}); err != nil || r.Done != 2 || r.Skipped != 2 {
			t.Fatalf("got %+v, error %v", r, err)
		}
		h.wantSum(ctx, 2)
		found, err := h.DeadLetters(ctx, admin.DeadLetterQuery{ReasonPrefix: "picked up:"}, 0)
		if err != nil || len(found.Items) != 1 {
			t.Fatal(found, err)
		}
		if r, err := h.DropDeadLetters(ctx,
			admin.DeadLetterQuery{IDs: []string{found.Items[0].Record.ID}}); err != nil || r.Done != 1 {
			t.Errorf("got %+v, error %v", r, err)
		}
		if r, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{}, admin.ForceRedrive()); err != nil ||
			r.Done != 1 {
			t.Errorf("got %+v, error %v", r, err)
		}
		if left := h.left(ctx); left != 0 {
			t.Errorf("%d dead letters remain; want 0", left)
		}
	})
}

// A dead letter of another hub fails without affecting others. Each redriven message returns to its original queue.
func TestRedriveDeadLetters_letterOfAnotherHub_failsWithoutBlockingOthers(t *testing.T) {
	t.Parallel()
	withLetters(t, 3, func(ctx context.Context, h *deadLetterHub) {
		h.failMessages(ctx, 3, "corrupt: for now")
		foreign := provider.Record{ID: "r", Group: "g", Body: `{"v":1,"kind":"wake","instanceId":"i","hub":"another"}`}
		later := provider.Record{ID: "s", Body: `{"v":99,"activityId":7,"name":"inc","instanceId":"i"}`}
		for queue, r := range map[string]provider.Record{
			provider.QueueInbox: foreign, "default": later,
			provider.QueueTimers: {
				ID:   "t",
				Body: `{"v":1,"hub":"test","instanceId":"i","executionId":"x","seq":1,"timerId":3,"fireAt":"2030-01-01T00:00:00Z"}`,
			},
		} {
			if err := h.Provider.DeadLetter(ctx, queue,
				provider.Unreadable{Record: r, Err: errors.New("it cannot be read")}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{})
		if err == nil || !strings.Contains(err.Error(), "another") || r.Done != 5 || r.Failed != 1 || !r.Complete {
			t.Errorf("got %+v, error %v", r, err)
		}
		for queue, url := range map[string]string{
			"default": h.Provider.Config().WorkQueues["default"], "timers": h.Provider.Config().TimersURL,
		} {
			out, err := h.Cloud.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
				QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"},
			})
			if err != nil ||
				!slices.Contains([]string{
					out.Attributes["ApproximateNumberOfMessages"], out.Attributes["ApproximateNumberOfMessagesDelayed"],
				}, "1") {
				t.Errorf("queue %s has the attributes %v, error %v; want one message", queue, out.Attributes, err)
			}
		}
		h.wantSum(ctx, 3)
	})
}

// If some or all deletes fail, a redrive sends each work item once and repeats only the deletes.
func TestRedriveDeadLetters_deletesFail_sendsEachMessageOnce(t *testing.T) {
	t.Parallel()
	const letters = 10
	for name, permits := range map[string]int{"none can be deleted": 0, "one delete fails, the next do not": letters} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withLetters(t, 1, func(ctx context.Context, h *deadLetterHub) {
				h.failWork(ctx, letters, "corrupt: for now")
				sent := h.countSent()
				var refused atomic.Bool
				count := h.fault
				h.fault = func(ctx context.Context, c simaws.Call, next func() error) error {
					if _, deletes := c.Input.(*sqs.DeleteMessageBatchInput); deletes &&
						(!refused.Swap(true) || permits == 0) {
						return &smithy.GenericAPIError{Code: "AccessDenied"}
					}
					return count(ctx, c, next)
				}
				r, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{Queue: "default"})
				if sent.Load() != letters || r.Done != int64(permits) || r.Failed != int64(letters-permits) {
					t.Errorf("redrive of %d work items with %d sends: got %+v, error %v",
						letters, sent.Load(), r, err)
				}
				if left := h.left(ctx); left != letters-permits {
					t.Errorf("%d dead letters remain", left)
				}
				if len(r.SentNotDeleted) != letters-permits {
					t.Errorf("SentNotDeleted is %q", r.SentNotDeleted)
				}
				if permits == 0 && (err == nil || !strings.Contains(err.Error(), "was sent but not deleted")) {
					t.Errorf("the error is %v; want an error for messages that were sent but not deleted", err)
				}
			})
		})
	}
}

// failWork creates dead letters of work items. Their activity IDs start at 2.
func (h *deadLetterHub) failWork(ctx context.Context, items int, reason string) {
	h.t.Helper()
	for n := range items {
		r := provider.Record{
			ID: fmt.Sprint(n),
			Body: fmt.Sprintf(
				`{"v":1,"hub":"test","instanceId":"i","executionId":"x","seq":1,"activityId":%d,"name":"inc","queue":"default","attempt":1}`,
				n+2,
			),
		}
		if err := h.Provider.DeadLetter(ctx, "default",
			provider.Unreadable{Record: r, Err: errors.New(reason)}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// countSent returns a counter of the messages that are sent to queues other than dead-letter queues.
func (h *deadLetterHub) countSent() *atomic.Int64 {
	var sent atomic.Int64
	h.fault = func(_ context.Context, c simaws.Call, next func() error) error {
		if in, sends := c.Input.(*sqs.SendMessageBatchInput); sends && !strings.Contains(*in.QueueUrl, "dead") {
			sent.Add(int64(len(in.Entries)))
		}
		return next()
	}
	return &sent
}

// If a redriven message fails immediately, it becomes a dead letter again while the redrive is running.
// The redrive sends each such message once and reports it.
func TestRedriveDeadLetters_messagesFailAgain_sendsEachOnceAndEnds(t *testing.T) {
	t.Parallel()
	withLetters(t, 1, func(ctx context.Context, h *deadLetterHub) {
		h.failMessages(ctx, 3, "corrupt: for now")
		failing := &failingRedrive{Provider: h.Provider, failMessages: func() { h.failAll(ctx, "corrupt: still") }}
		r, err := admin.New(failing).RedriveDeadLetters(ctx, admin.DeadLetterQuery{ReasonPrefix: "corrupt:"})
		// The redrive does not report messages that return after the last receive.
		// Concurrent receivers do not wait for each other.
		if err != nil || failing.redriven != 3 || r.Done != 3 || r.TooRecent < 1 || r.TooRecent > 3 || !r.Complete {
			t.Errorf("the provider resent %d messages; want 3; result %+v, %v", failing.redriven, r, err)
		}
		if left := h.left(ctx); left != 3 {
			t.Errorf("%d dead letters remain; want 3", left)
		}
		if r, err = h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{ReasonPrefix: "corrupt:"}); err != nil ||
			r.Done != 3 {
			t.Errorf("the next redrive: got %+v, error %v", r, err)
		}
	})
}

// failingRedrive is a provider that turns each redriven message into a dead letter again.
type failingRedrive struct {
	*dynamo.Provider

	failMessages func()
	redriven     int
}

func (p *failingRedrive) RedriveDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	if p.redriven += len(letters); p.redriven > 100 {
		return errors.New("it does not end")
	}
	if err := p.Provider.RedriveDeadLetters(ctx, queue, letters...); err != nil {
		return err
	}
	time.Sleep(time.Second) // virtual time
	p.failMessages()
	return nil
}

// A redrive with a time limit reports that more dead letters may remain.
// Repeated calls reach all dead letters, including those after the dead letters that the redrive skips.
func TestRedriveDeadLetters_timeLimit_repeatedCallsReachAllLetters(t *testing.T) {
	t.Parallel()
	const letters = 800
	withLetters(t, 1, func(ctx context.Context, h *deadLetterHub) {
		h.failWork(ctx, letters, "poison: it dies")
		h.failWork(ctx, letters, "corrupt: for now")
		sent := h.countSent()
		count := h.fault
		h.fault = func(ctx context.Context, c simaws.Call, next func() error) error {
			if _, receives := c.Input.(*sqs.ReceiveMessageInput); receives {
				time.Sleep(time.Second) // virtual time
			}
			return count(ctx, c, next)
		}
		began := time.Now()
		for calls, complete := 1, false; !complete && calls < 7; calls++ {
			r, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{
				Queue: "default", SentBefore: began, TimeLimit: 5 * time.Second,
			})
			if err != nil || r.Complete && calls < 3 {
				t.Errorf("redrive call %d: got %+v, error %v", calls, r, err)
			}
			if complete = r.Complete; !complete && calls == 6 {
				t.Error("six redrive calls do not reach all dead letters")
			}
		}
		if sent.Load() != letters {
			t.Errorf("the redrives sent %d messages; want %d", sent.Load(), letters)
		}
		time.Sleep(3 * time.Minute) // virtual time, after which the skipped dead letters are visible again
		if found, err := h.DeadLetters(ctx, admin.DeadLetterQuery{Queue: "default"}, 1000); err != nil ||
			len(found.Items) != letters || !found.Complete {
			t.Errorf("%d dead letters remain, error %v", len(found.Items), err)
		}
		if found, err := h.DeadLetters(ctx,
			admin.DeadLetterQuery{Queue: "default", ReasonPrefix: "corrupt:", TimeLimit: 2 * time.Second},
			0); err != nil || found.Complete {
			t.Errorf("the list with a time limit of two seconds: %+v, error %v; want an incomplete list", found, err)
		}
		_, err := h.DropDeadLetters(ctx, admin.DeadLetterQuery{Queue: "default", TimeLimit: -time.Second})
		if wrong, refused := errors.AsType[*provider.FieldError](err); !refused || wrong.Field != "within" {
			t.Errorf("the drop with a negative time limit returns the error %v; want a FieldError for within", err)
		}
	})
}

// A list that reads many dead letters and selects none does not keep their bodies in memory.
// This test measures the heap, so it does not run in parallel with other tests.
//
//nolint:paralleltest // all running tests share the heap
func TestDeadLetters_manyUnselectedLetters_keepNoBodiesInMemory(t *testing.T) {
	withLetters(t, 1, func(ctx context.Context, h *deadLetterHub) {
		const letters, size = 1000, 200 << 10
		many := &manyLetters{Provider: h.Provider, left: letters, size: size, before: heap()}
		found, err := admin.New(many).DeadLetters(ctx, admin.DeadLetterQuery{InstanceID: "one"}, 10)
		if err != nil || len(found.Items) > 0 || many.left > 0 {
			t.Fatal(len(found.Items), many.left, err)
		}
		if many.held > letters*size/10 || many.released != letters {
			t.Errorf("the list of %d dead letters of %d KB keeps %d MB in memory and releases %d dead letters", letters,
				size>>10, many.held>>20, many.released)
		}
	})
}

// manyLetters is a provider with dead letters of a given size.
// When the caller releases dead letters, manyLetters measures how much the heap has grown.
type manyLetters struct {
	*dynamo.Provider

	left, size, released int
	before, held         int64
}

func (p *manyLetters) DeadLetterQueues() []string { return []string{provider.QueueInbox} }

func (p *manyLetters) ReceiveDeadLetters(context.Context, string, time.Duration) (some []provider.DeadLetter, _ error) {
	for range min(10, p.left) {
		p.left--
		id := fmt.Sprint(p.left)
		some = append(some, provider.DeadLetter{
			Queue:  provider.QueueInbox,
			Record: provider.Record{ID: id, ReceiptHandle: id, Body: strings.Repeat("x", p.size)},
		})
	}
	return some, nil
}

func (p *manyLetters) ReleaseDeadLetters(_ context.Context, _ string, letters ...provider.DeadLetter) error {
	p.held, p.released = heap()-p.before, len(letters)
	return nil
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
