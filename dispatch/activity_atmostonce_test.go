package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// R32: no attempt of an activity with AtMostOnce starts twice, and no known outcome is lost. These cases could break
// it:
//   - A worker crashes at one of several points: before or after it takes the run lease, while the code runs, or before
//     it stores or sends the outcome or deletes the record.
//   - A copy of the work item arrives during or after the run, or in a later attempt. A reconciliation also sends
//     copies.
//   - The worker stops the activity because the invocation ends or the run lease cannot be renewed.
//   - The outcome cannot be stored and is sent. A second delivery sends its outcome later, possibly after a retry.
//   - The first delivery is released before the code starts, so it does not count as a start.
//   - Abandoned code returns a result.
//   - The activity completes asynchronously by its token.

// debits counts the started attempts by instance, activity and attempt.
type debits struct {
	mu    sync.Mutex
	begun map[string]int
}

// begins counts the start of an attempt.
func (d *debits) begins(ctx context.Context) {
	a := perdure.ActivityInfoFrom(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun == nil {
		d.begun = map[string]int{}
	}
	d.begun[fmt.Sprintf("%s/%d/%d", a.InstanceID, a.ActivityID, a.Attempt)]++
}

// debitInput configures an orchestration that calls the activity "debit" Times times in sequence. Each call takes Takes
// and fails Fails times.
type debitInput struct {
	Times, Fails int
	Takes        time.Duration
	// Heeds makes the activity return when its context ends.
	Heeds, Retried bool
}

// registry returns the activity "debit" and the orchestration "debits".
func (d *debits) registry() *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "debit", func(ctx context.Context, of debitInput) (int, error) {
		d.begins(ctx)
		if of.Heeds {
			_ = sleepFor(ctx, of.Takes)
		} else {
			time.Sleep(of.Takes)
		}
		if perdure.ActivityInfoFrom(ctx).Attempt <= of.Fails {
			return 0, errors.New("declined")
		}
		return 1, nil
	})
	perdure.AddOrchestration(r, "debits", func(ctx *perdure.OrchestrationContext, of debitInput) (n int, err error) {
		opts := []perdure.ActivityCallOption{perdure.AtMostOnce()}
		if of.Retried {
			opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{}))
		}
		for range of.Times {
			one, err := perdure.CallActivityByName[int](ctx, "debit", of, opts...).Await(ctx)
			if err != nil {
				return n, err
			}
			n += one
		}
		return n, nil
	})
	return r
}

// check fails the test if an attempt started twice, or if more than most attempts started.
func (d *debits) check(t *testing.T, when string, most int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for attempt, n := range d.begun {
		if n > 1 {
			t.Errorf("%s: attempt %s started %d times, want once", when, attempt, n)
		}
	}
	if len(d.begun) > most {
		t.Errorf("%s: got %d attempts, want at most %d: %v", when, len(d.begun), most, d.begun)
	}
}

func TestR32_crashAtAnyCall_startsNoAttemptTwice(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]debitInput{
		"short": {Times: 2, Retried: true}, "long": {Times: 1, Retried: true, Takes: time.Minute},
		"failing": {Times: 1, Fails: 2, Retried: true, Takes: 5 * time.Second},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", after=", after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); ; n += shortrun.Step(crashStep) {
					d := &debits{}
					intercept, calls := simhub.CrashAt(n, after)
					o := simhub.Options{
						Registry: d.registry(), Intercept: intercept, Environments: 2, WorkVisibility: time.Minute,
					}
					inBubble(t, o, func(_ context.Context, h *hub) {
						end := h.finish(h.start("debits", of))
						if string(end.Output) != fmt.Sprint(of.Times) {
							t.Errorf("crash at call %d: ended with %s %s %v", n, end.String(), end.Output, end.Error)
						}
						h.checkRest()
					})
					d.check(t, fmt.Sprint("crash at call ", n), of.Times+of.Fails+1)
					if calls.Load() < n || t.Failed() {
						return
					}
				}
			})
		}
	}
}

// Without a retry policy, the orchestration receives an InterruptedError, and the code has started once.
func TestR32_workerDies_activityFailsAsInterrupted(t *testing.T) {
	t.Parallel()
	d, began := &debits{}, make(chan struct{})
	r := d.registry()
	perdure.AddActivity(r, "hang", func(ctx context.Context, _ int) (int, error) {
		d.begins(ctx)
		close(began)
		<-ctx.Done()
		return 0, ctx.Err()
	})
	perdure.AddOrchestration(r, "hangs", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "hang", 0, perdure.AtMostOnce()).Await(ctx)
		if interrupted, ok := errors.AsType[*perdure.InterruptedError](err); ok {
			return interrupted.Message, nil
		}
		return "", err
	})
	var dead simaws.Interceptor = func(ctx context.Context, _ simaws.Call, next func() error) error {
		if ctx.Value(crashingKey{}) != nil {
			return simhub.ErrCrashed
		}
		return next()
	}
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("hangs", 0)
		h.turn(0)
		records := h.receive("sim://default")
		go h.activities(r).HandleRecords(context.WithValue(ctx, crashingKey{}, true), records)
		<-began
		h.interfere(dead)
		died := time.Now()
		end := h.finish(in)
		if end.Kind != history.OrchestrationCompleted || len(end.Output) < 100 {
			t.Errorf("ended with %s %s %v, want the message of an InterruptedError",
				end.String(), end.Output, end.Error)
		}
		if took := end.Time.Sub(died); took > 16*time.Minute {
			t.Errorf("ended %v after the crash, want at most 16m", took)
		}
		h.checkRest()
	})
	d.check(t, "worker crash", 1)
}

// Copies of the work item arrive during and after the run. They do not start an attempt or add an outcome.
func TestR32_copiesArrive_startNothing(t *testing.T) {
	t.Parallel()
	d := &debits{}
	inBubble(t, simhub.Options{Registry: d.registry(), Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("debits", debitInput{Times: 1, Takes: 5 * time.Minute})
		go func() {
			time.Sleep(time.Second)
			again := h.copyOf(in, 3)
			for range 60 {
				if err := h.Provider.PutWorkItems(ctx, again); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second)
			}
		}()
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s %v, want the result 1", end.String(), end.Error)
		}
		h.checkRest()
	})
	d.check(t, "with copies", 1)
}

// An invocation ends before its activity. If the code returns in the grace period, its outcome is sent, and an error is
// the cause of an interruption. If the code does not return, the next delivery fails the attempt.
func TestR32_invocationEnds_activityIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   debitInput
		want string
	}{
		"ignores its context": {debitInput{Takes: 10 * time.Minute}, history.TypeInterrupted},
		"returns an error": {
			debitInput{Takes: 10 * time.Minute, Heeds: true, Fails: 1}, history.TypeInterrupted,
		},
		"completes in the grace period": {debitInput{Takes: 10 * time.Minute, Heeds: true}, ""},
		"completes in the second attempt": {
			debitInput{Takes: 10 * time.Minute, Heeds: true, Fails: 1, Retried: true}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			c.of.Times = 1
			o := simhub.Options{Registry: d.registry(), InvocationLimit: time.Minute, WorkVisibility: time.Minute}
			inBubble(t, o, func(_ context.Context, h *hub) {
				in := h.start("debits", c.of)
				end := h.finish(in)
				var cause *history.Failure
				if end.Error != nil {
					cause = end.Error.Cause
				}
				switch {
				case c.want == "" && string(end.Output) != "1":
					t.Errorf("ended with %s %v, want the result 1", end.String(), end.Error)
				case c.want != "" && (cause == nil || cause.Type != c.want || (cause.Cause != nil) != c.of.Heeds):
					t.Errorf("ended with %s %+v, want an interruption", end.String(), end.Error)
				case c.of.Heeds && !c.of.Retried && end.Time.Sub(in.CreatedAt) > 2*time.Minute:
					t.Errorf("ended after %v, want at most 2m", end.Time.Sub(in.CreatedAt))
				}
				h.checkRest()
			})
			d.check(t, name, 1+c.of.Fails)
		})
	}
}

// 1. A worker cannot store an outcome and sends it.
// 2. The worker cannot delete its record. The next delivery sends an interruption.
// 3. The session drops the later outcome.
func TestR32_outcomeCannotBeStored_isSent(t *testing.T) {
	t.Parallel()
	for _, of := range []debitInput{{Times: 2}, {Times: 2, Retried: true}, {Times: 1, Fails: 2, Retried: true}} {
		t.Run(fmt.Sprintf("%+v", of), func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			o := simhub.Options{Registry: d.registry(), Environments: 2, WorkVisibility: time.Minute}
			inBubble(t, o, func(_ context.Context, h *hub) {
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					switch in := c.Input.(type) {
					case *dynamodb.UpdateItemInput:
						if in.UpdateExpression != nil && *in.UpdateExpression == "SET #outcome = :outcome" {
							return simaws.Throttled()
						}
					case *sqs.DeleteMessageBatchInput:
						if *in.QueueUrl == "sim://default" {
							return errors.New("out of service")
						}
					}
					return next()
				})
				in := h.start("debits", of)
				// After a hundred deliveries, SQS would move the record to the dead-letter queue.
				h.serveFor(30 * time.Minute)
				h.interfere(nil)
				if end := h.finish(in); string(end.Output) != fmt.Sprint(of.Times) {
					t.Errorf("ended with %s %s %v, want the result %d", end.String(), end.Output, end.Error, of.Times)
				}
				h.checkRest()
			})
			d.check(t, "outcome not stored", of.Times+of.Fails)
		})
	}
}

// A worker has stored an outcome but cannot send it. The next delivery sends it.
func TestR32_storedOutcomeCannotBeSent_nextDeliverySendsIt(t *testing.T) {
	t.Parallel()
	d := &debits{}
	inBubble(t, simhub.Options{Registry: d.registry(), WorkVisibility: time.Minute}, func(_ context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			in, ok := c.Input.(*sqs.SendMessageBatchInput)
			if ok && strings.Contains(*in.Entries[0].MessageBody, `"kind":"activityOutcomes"`) {
				return errors.New("out of service")
			}
			return next()
		})
		in := h.start("debits", debitInput{Times: 1})
		h.serveFor(time.Hour)
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s %v, want the result 1", end.String(), end.Error)
		}
		h.checkRest()
	})
	d.check(t, "outcome not sent", 1)
}

// A build without the activity releases the record. No attempt has started, and a later delivery runs it.
func TestR32_recordIsReleasedBeforeTheStart_runsLater(t *testing.T) {
	t.Parallel()
	d := &debits{}
	inBubble(t, simhub.Options{Registry: d.registry(), WorkVisibility: time.Minute}, func(ctx context.Context, h *hub) {
		in := h.start("debits", debitInput{Times: 1})
		h.turn(0)
		for range 3 {
			records := h.receive("sim://default")
			if failed := h.activities(registry()).HandleRecords(ctx, records); len(failed) != 1 {
				t.Errorf("got %d failed records, want 1", len(failed))
			}
			time.Sleep(20 * time.Minute)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s %v, want the result 1", end.String(), end.Error)
		}
		h.checkRest()
	})
	d.check(t, "released record", 1)
}

// AtMostOnce costs one read and two writes, one of them for the outcome.
func TestR32_costsOneReadAndTwoWrites(t *testing.T) {
	t.Parallel()
	calls := map[bool]map[string]int{}
	for _, once := range []bool{false, true} {
		r := (&debits{}).registry()
		perdure.AddOrchestration(r, "debits-once", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			var opts []perdure.ActivityCallOption
			if once {
				opts = append(opts, perdure.AtMostOnce())
			}
			return perdure.CallActivityByName[int](ctx, "debit", debitInput{}, opts...).Await(ctx)
		})
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			h.finish(h.start("debits-once", 0))
			calls[once] = map[string]int{}
			for _, op := range h.operations(0) {
				calls[once][op]++
			}
		})
	}
	for op, want := range map[string]int{
		"GetItem": 1, "UpdateItem": 2, "PutItem": 0, "SendMessageBatch": 0, "TransactWriteItems": 0,
	} {
		if more := calls[true][op] - calls[false][op]; more != want {
			t.Errorf("got %d more calls of %s, want %d", more, op, want)
		}
	}
}
