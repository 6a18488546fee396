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

// The tests of R32: of an activity that is called with AtMostOnce no attempt begins twice, and no outcome is lost that is known. What could break it:
//   - its worker dies: before it has the run, when it has it, while its code runs, before the outcome is kept, before it is sent, before its record is
//     deleted;
//   - a copy of its work item comes: while it runs, after it, in an attempt that follows; from a reconciliation too;
//   - its worker stops it: the invocation ends, the run cannot be renewed;
//   - the outcome cannot be kept, and is sent; what comes of a second delivery then comes behind it, also where the attempt is tried again;
//   - the first delivery does not begin it, and gives it back: that is no begin;
//   - the code that is not heard any more returns, with a result;
//   - it is handed over to the holder of a token.

// debits are the attempts that have begun, by instance, activity and attempt.
type debits struct {
	mu    sync.Mutex
	begun map[string]int
}

func (d *debits) begins(ctx context.Context) {
	a := perdure.ActivityInfoFrom(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun == nil {
		d.begun = map[string]int{}
	}
	d.begun[fmt.Sprintf("%s/%d/%d", a.InstanceID, a.ActivityID, a.Attempt)]++
}

// debiting is what an orchestration debits: so often, one after the other, each of which takes so long, and fails so often.
type debiting struct {
	Times, Fails int
	Takes        time.Duration
	// Heeds: its code returns when its context ends.
	Heeds, Retried bool
}

func (d *debits) registry() *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "debit", func(ctx context.Context, of debiting) (int, error) {
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
	perdure.AddOrchestration(r, "debits", func(ctx *perdure.OrchestrationContext, of debiting) (n int, err error) {
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

// check fails unless no attempt has begun twice, and so many have begun at most.
func (d *debits) check(t *testing.T, when string, most int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for attempt, n := range d.begun {
		if n > 1 {
			t.Errorf("%s: %s has begun %d times", when, attempt, n)
		}
	}
	if len(d.begun) > most {
		t.Errorf("%s: %d attempts have begun, of %d at most: %v", when, len(d.begun), most, d.begun)
	}
}

func TestR32ACrashAtAnyCallBeginsNoAttemptTwice(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]debiting{
		"short": {Times: 2, Retried: true}, "long": {Times: 1, Retried: true, Takes: time.Minute}, "that fails": {Times: 1, Fails: 2, Retried: true, Takes: 5 * time.Second},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", after=", after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); ; n += shortrun.Step(crashStep) {
					d := &debits{}
					intercept, calls := simhub.CrashAt(n, after)
					inBubble(t, simhub.Options{Registry: d.registry(), Intercept: intercept, Environments: 2, WorkVisibility: time.Minute}, func(_ context.Context, h *hub) {
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

// Without a policy the orchestration has the error, and the code has begun once.
func TestR32WhatIsInterruptedFails(t *testing.T) {
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
		if ctx.Value(deathly{}) != nil {
			return simhub.ErrCrashed
		}
		return next()
	}
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("hangs", 0)
		h.turn(0)
		records := h.receive("sim://default")
		go h.activities(r).HandleRecords(context.WithValue(ctx, deathly{}, true), records)
		<-began
		h.interfere(dead)
		died := time.Now()
		end := h.finish(in)
		if end.Kind != history.OrchestrationCompleted || len(end.Output) < 100 {
			t.Errorf("it ended with %s %s %v", end.String(), end.Output, end.Error)
		}
		if took := end.Time.Sub(died); took > 16*time.Minute {
			t.Errorf("it took %v", took)
		}
		h.checkRest()
	})
	d.check(t, "its worker died", 1)
}

// Copies come while it runs, and when it is over; a second one is no attempt, and no outcome.
func TestR32CopiesBeginNothing(t *testing.T) {
	t.Parallel()
	d := &debits{}
	inBubble(t, simhub.Options{Registry: d.registry(), Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("debits", debiting{Times: 1, Takes: 5 * time.Minute})
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
			t.Errorf("it ended with %s %v", end.String(), end.Error)
		}
		h.checkRest()
	})
	d.check(t, "with copies", 1)
}

// Its invocation ends before it does. What it returns in its last moments is heard, an error as the cause; what does not return has failed with the next delivery.
func TestR32AnInvocationThatEndsInterrupts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   debiting
		want string
	}{
		"it does not heed it":     {debiting{Takes: 10 * time.Minute}, history.TypeInterrupted},
		"it returns an error":     {debiting{Takes: 10 * time.Minute, Heeds: true, Fails: 1}, history.TypeInterrupted},
		"it is done, after all":   {debiting{Takes: 10 * time.Minute, Heeds: true}, ""},
		"it is done, and retried": {debiting{Takes: 10 * time.Minute, Heeds: true, Fails: 1, Retried: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			c.of.Times = 1
			o := simhub.Options{Registry: d.registry(), InvocationLimit: time.Minute, WorkVisibility: time.Minute}
			inBubble(t, o, func(_ context.Context, h *hub) {
				in := h.start("debits", c.of)
				end := h.finish(in)
				switch {
				case c.want == "" && string(end.Output) != "1":
					t.Errorf("it ended with %s %v", end.String(), end.Error)
				case c.want != "" && (end.Error == nil || end.Error.Cause == nil || end.Error.Cause.Type != c.want || (end.Error.Cause.Cause != nil) != c.of.Heeds):
					t.Errorf("it ended with %s %+v, want one that was interrupted", end.String(), end.Error)
				case c.of.Heeds && !c.of.Retried && end.Time.Sub(in.CreatedAt) > 2*time.Minute:
					t.Errorf("it ended after %v", end.Time.Sub(in.CreatedAt))
				}
				h.checkRest()
			})
			d.check(t, name, 1+c.of.Fails)
		})
	}
}

// The outcome cannot be kept, and is sent. Its worker dies before its record is deleted: what the next delivery says comes behind, and is not heard.
func TestR32AnOutcomeThatCannotBeKeptIsSent(t *testing.T) {
	t.Parallel()
	for _, of := range []debiting{{Times: 2}, {Times: 2, Retried: true}, {Times: 1, Fails: 2, Retried: true}} {
		t.Run(fmt.Sprintf("%+v", of), func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			inBubble(t, simhub.Options{Registry: d.registry(), Environments: 2, WorkVisibility: time.Minute}, func(_ context.Context, h *hub) {
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
				// Longer, and a record that is back after each lease comes a hundred times, and is moved to the dead letters.
				h.serveFor(30 * time.Minute)
				h.interfere(nil)
				if end := h.finish(in); string(end.Output) != fmt.Sprint(of.Times) {
					t.Errorf("it ended with %s %s %v", end.String(), end.Output, end.Error)
				}
				h.checkRest()
			})
			d.check(t, "not kept", of.Times+of.Fails)
		})
	}
}

// An outcome that is kept, and could not be sent, is sent by the next delivery.
func TestR32AnOutcomeThatIsKeptIsNotLost(t *testing.T) {
	t.Parallel()
	d := &debits{}
	inBubble(t, simhub.Options{Registry: d.registry(), WorkVisibility: time.Minute}, func(_ context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok && strings.Contains(*in.Entries[0].MessageBody, `"kind":"activityOutcomes"`) {
				return errors.New("out of service")
			}
			return next()
		})
		in := h.start("debits", debiting{Times: 1})
		h.serveFor(time.Hour)
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("it ended with %s %v", end.String(), end.Error)
		}
		h.checkRest()
	})
	d.check(t, "not sent", 1)
}

// A build that does not have the activity gives it back: nothing has begun, and the next one runs it.
func TestR32WhatIsGivenBackUnbegunRuns(t *testing.T) {
	t.Parallel()
	d := &debits{}
	inBubble(t, simhub.Options{Registry: d.registry(), WorkVisibility: time.Minute}, func(ctx context.Context, h *hub) {
		in := h.start("debits", debiting{Times: 1})
		h.turn(0)
		for range 3 {
			records := h.receive("sim://default")
			if failed := h.activities(registry()).HandleRecords(ctx, records); len(failed) != 1 {
				t.Errorf("%d records went back", len(failed))
			}
			time.Sleep(20 * time.Minute)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("it ended with %s %v", end.String(), end.Error)
		}
		h.checkRest()
	})
	d.check(t, "given back", 1)
}

// What it costs: a read and two writes, one of them of its outcome.
func TestR32WhatItCosts(t *testing.T) {
	t.Parallel()
	calls := map[bool]map[string]int{}
	for _, once := range []bool{false, true} {
		r := (&debits{}).registry()
		perdure.AddOrchestration(r, "debits-once", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			var opts []perdure.ActivityCallOption
			if once {
				opts = append(opts, perdure.AtMostOnce())
			}
			return perdure.CallActivityByName[int](ctx, "debit", debiting{}, opts...).Await(ctx)
		})
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			h.finish(h.start("debits-once", 0))
			calls[once] = map[string]int{}
			for _, op := range h.operations(0) {
				calls[once][op]++
			}
		})
	}
	for op, want := range map[string]int{"GetItem": 1, "UpdateItem": 2, "PutItem": 0, "SendMessageBatch": 0, "TransactWriteItems": 0} {
		if more := calls[true][op] - calls[false][op]; more != want {
			t.Errorf("%d more of %s, want %d", more, op, want)
		}
	}
}
