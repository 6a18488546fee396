package kit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Register adds the activities and orchestrations that scenarios of several packages call.
func Register(r *perdure.Registry) {
	addActivities(r)
	perdure.AddOrchestration(r, "Counts", Chain())
	perdure.AddOrchestration(r, "TooSlow", TimesOut)
	perdure.AddOrchestration(r, "Waits", WaitForGo)
	perdure.AddOrchestration(r, "Sleeps", SleepAtLeast)
	perdure.AddOrchestration(r, "Hello-detached", Hello)
	perdure.AddOrchestration(r, "Listens", CollectWords)
}

// WaitForGo waits for the event "go" and returns its text.
func WaitForGo(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	ctx.SetCustomStatus("waiting")
	return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
}

// Chain calls inc n times in sequence.
func Chain(opts ...perdure.ActivityCallOption) func(ctx *perdure.OrchestrationContext, n int) (int, error) {
	return func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if v, err = perdure.CallActivity(ctx, Inc, v, opts...).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, nil
	}
}

// FanOut calls inc n times concurrently and adds the results.
func FanOut(opts ...perdure.ActivityCallOption) func(ctx *perdure.OrchestrationContext, n int) (int, error) {
	return func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[int]
		for i := range n {
			fs = append(fs, perdure.CallActivity(ctx, Inc, i, opts...))
		}
		return SumOf(ctx, fs)
	}
}

// SumOf returns the sum of the results of futures.
func SumOf(ctx *perdure.OrchestrationContext, fs []*perdure.Future[int]) (sum int, err error) {
	results, err := perdure.AwaitAll(ctx, fs)
	for _, n := range results {
		sum += n
	}
	return sum, err
}

// FailureType returns the type of the failure of an activity or orchestration.
func FailureType(err error) string {
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
		return failed.Type
	}
	if failed, ok := errors.AsType[*perdure.SubOrchestrationError](err); ok {
		return failed.Type
	}
	return fmt.Sprintf("%T", err)
}

// ReasonOf returns the reason of a cancellation.
func ReasonOf(err error) perdure.CancelReason {
	if cancelled, ok := errors.AsType[*perdure.CancelledError](err); ok {
		return cancelled.Reason
	}
	return "not cancelled"
}

// Hello returns a greeting.
func Hello(_ *perdure.OrchestrationContext, name string) (string, error) {
	return "hello, " + name, nil
}

// TallyInput is the state of a Tallies instance: it counts to Of.
type TallyInput struct {
	Count, Of int
}

// Tallies counts updates, one at a time and each with an activity. It continues as new after some of them.
func Tallies(ctx *perdure.OrchestrationContext, t TallyInput) (int, error) {
	before := t.Count
	err := perdure.SetUpdateHandler(ctx, "next", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		n, err := perdure.CallActivity(ctx, Inc, t.Count).Await(ctx)
		if err != nil {
			return 0, err
		}
		t.Count = n
		perdure.RaiseEvent(ctx, ctx.InstanceID(), "counted", n)
		return n, nil
	}, perdure.Serialized())
	for err == nil && t.Count < t.Of {
		if _, err = perdure.WaitForExternalEvent[int](ctx, "counted").Await(ctx); err == nil && t.Count > before+1 &&
			t.Count < t.Of {
			if err = perdure.AwaitUpdateHandlers(ctx); err == nil {
				return perdure.ContinueAsNew[int](ctx, t)
			}
		}
	}
	return t.Count, err
}

// WordsInput is the number of words to wait for, and the delay before each wait.
type WordsInput struct {
	Count int
	Rest  time.Duration
}

// CollectWords returns the data of external events with the name "word".
func CollectWords(ctx *perdure.OrchestrationContext, w WordsInput) (got []string, err error) {
	for len(got) < w.Count {
		ctx.SetCustomStatus(fmt.Sprintf("resting after %d", len(got)))
		if err := perdure.Sleep(ctx, w.Rest); err != nil {
			return got, err
		}
		ctx.SetCustomStatus("waiting")
		word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
		if err != nil {
			return got, err
		}
		got = append(got, word)
	}
	return got, nil
}

// RaiseWords raises an event for each word.
func RaiseWords(words ...string) func(ctx context.Context, w World, id string) error {
	return func(ctx context.Context, w World, id string) error {
		for _, word := range words {
			if err := w.Client.RaiseEvent(ctx, id, "word", word, client.WithEventID(word)); err != nil {
				return err
			}
		}
		return nil
	}
}

// TimesOut calls an activity whose start-to-close timeout is too short.
func TimesOut(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	return perdure.CallActivity(ctx, Nap, 10*tick, perdure.WithStartToCloseTimeout(tick)).Await(ctx)
}

// SleepAtLeast sleeps, and fails if the timer is early.
func SleepAtLeast(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	began := ctx.Now()
	if err := perdure.Sleep(ctx, d); err != nil {
		return "", err
	}
	if slept := ctx.Now().Sub(began); slept < d {
		return "", fmt.Errorf("slept %v, want at least %v", slept, d)
	}
	return "slept", nil
}

// CallSleeper waits for a child that sleeps.
func CallSleeper(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	f := perdure.CallSubOrchestrationByName[string](ctx, "Sleeps", d, perdure.WithInstanceID(ctx.InstanceID()+"/child"))
	ctx.SetCustomStatus("waiting")
	return f.Await(ctx)
}
