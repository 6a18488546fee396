package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
)

// Names that the scenarios share.
const (
	firstID, secondID = "it", "other" // instances
	stepActivity      = "step"        // the activity that every orchestration calls
	goEvent           = "go"          // the event that every orchestration waits for
)

// activityState is the state of the activity outside of the hub.
type activityState struct {
	// hold keeps activities running until their context ends, so that their work items can be lost.
	hold atomic.Bool

	mu            sync.Mutex
	token         string   // token of the last activity that returned ErrPending
	inputs        []string // inputs of all runs of the activity
	running, most int      // concurrent runs, and their maximum
}

// begin records a run. The returned function records its end.
func (s *activityState) begin(input string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inputs = append(s.inputs, input)
	s.running++
	s.most = max(s.most, s.running)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	}
}

// runs returns the number of runs with an input.
func (s *activityState) runs(input string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.inputs {
		if in == input {
			n++
		}
	}
	return n
}

// step is the activity of all scenarios. The input selects the behavior of the activity.
func (s *activityState) step(ctx context.Context, input string) (string, error) {
	if s.hold.Load() {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	defer s.begin(input)()
	switch input {
	case "large":
		return strings.Repeat("x", 300<<10), nil
	case "slow":
		<-ctx.Done()
		return "", context.Cause(ctx)
	case "alone":
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(time.Minute):
		}
	case "token":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.token = perdure.ActivityInfoFrom(ctx).CompletionToken
		return "", perdure.ErrPending
	case "declined":
		if half, wantResumed := perdure.HeartbeatDetails[string](ctx); wantResumed {
			return half, nil
		}
		perdure.Heartbeat(ctx, "half")
		return "", perdure.WithErrorDetails(errors.New("card declined"), map[string]int{"code": 51})
	}
	return "did " + input, nil
}

// matrixCode is the code of all features. Changed code calls another activity.
func matrixCode(state *activityState, changed bool) *perdure.Registry {
	c := &orchestrations{stepActivity}
	if changed {
		c.activity = "another step"
	}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, stepActivity, state.step)
	perdure.AddOrchestration(r, "plain", c.plain)
	perdure.AddOrchestration(r, "kept", c.plain, perdure.WithRetention(24*time.Hour))
	perdure.AddOrchestration(r, "alone", c.alone)
	perdure.AddOrchestration(r, "inline", c.inline)
	perdure.AddOrchestration(r, "rounds", c.rounds)
	perdure.AddOrchestration(r, "parcel", c.parcel)
	perdure.AddOrchestration(r, "versioned", c.plain)
	perdure.AddOrchestration(r, "versioned", c.gifts, perdure.WithVersion("1"))
	perdure.AddOrchestration(r, "cancelled", c.cancelled)
	perdure.AddOrchestration(r, "counted", c.counted)
	perdure.AddOrchestration(r, "declined", c.declined)
	perdure.AddOrchestration(r, "trip", c.trip)
	perdure.AddEntity(r, "stock", perdure.Operation("refill", c.refill))
	return r
}

// orchestrations are the orchestrations of one build.
type orchestrations struct{ activity string }

func (c *orchestrations) step(
	ctx *perdure.OrchestrationContext, input string, opts ...perdure.ActivityCallOption,
) (string, error) {
	return perdure.CallActivityByName[string](ctx, c.activity, input, opts...).Await(ctx)
}

// waitForGo waits for the event, and appends its data to a result.
func waitForGo(ctx *perdure.OrchestrationContext, result string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	data, err := perdure.WaitForExternalEvent[string](ctx, goEvent).Await(ctx)
	return result + " " + data, err
}

func (c *orchestrations) plain(ctx *perdure.OrchestrationContext, in string) (string, error) {
	result, err := c.step(ctx, in)
	return waitForGo(ctx, result, err)
}

func (c *orchestrations) alone(ctx *perdure.OrchestrationContext, in string) (string, error) {
	result, err := c.step(ctx, in, perdure.Exclusive("account 7"))
	return waitForGo(ctx, result, err)
}

func (c *orchestrations) inline(ctx *perdure.OrchestrationContext, in string) (string, error) {
	result, err := c.step(ctx, in, perdure.Inline())
	return waitForGo(ctx, result, err)
}

// rounds continues as new once.
func (c *orchestrations) rounds(ctx *perdure.OrchestrationContext, in string) (string, error) {
	result, err := c.step(ctx, in)
	result, err = waitForGo(ctx, result, err)
	if err != nil || in != "first" {
		return result, err
	}
	return perdure.ContinueAsNew[string](ctx, "second")
}

// parcel has an address that an update changes.
func (c *orchestrations) parcel(ctx *perdure.OrchestrationContext, to string) (string, error) {
	err := perdure.SetUpdateHandler(ctx, "address",
		func(ctx *perdure.OrchestrationContext, next string) (string, error) {
			label, err := c.step(ctx, next)
			if err == nil {
				to = next
			}
			return label, err
		}, perdure.WithValidator(func(next string) error {
			if next == "" {
				return errors.New("no address")
			}
			return nil
		}))
	if err != nil {
		return "", err
	}
	_, err = waitForGo(ctx, "", nil)
	return to, errors.Join(err, perdure.AwaitUpdateHandlers(ctx))
}

func (c *orchestrations) gifts(ctx *perdure.OrchestrationContext, in string) (string, error) {
	perdure.Version(ctx, "gifts", perdure.DefaultVersion, 1)
	result, err := c.step(ctx, in)
	return waitForGo(ctx, "gift: "+result, err)
}

// cancelled waits for the event after its cancellation.
func (c *orchestrations) cancelled(ctx *perdure.OrchestrationContext, in string) (string, error) {
	result, err := c.step(ctx, in)
	cleanup := perdure.WithoutCancel(ctx)
	if _, failed := c.step(cleanup, "clean"); failed != nil {
		return "", failed
	}
	if _, failed := waitForGo(cleanup, "", nil); failed != nil {
		return "", failed
	}
	return result, err
}

func (c *orchestrations) counted(ctx *perdure.OrchestrationContext, in string) (string, error) {
	counts := map[string]int{}
	err := perdure.SetQueryHandler(ctx, "count", func(of string) (int, error) { return counts[of], nil })
	if err != nil {
		return "", err
	}
	result, err := c.step(ctx, in)
	counts[in]++
	return waitForGo(ctx, result, err)
}

func (c *orchestrations) declined(ctx *perdure.OrchestrationContext, in string) (string, error) {
	ctx.SetCustomStatus("paying")
	result, err := c.step(ctx, in,
		perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Hour}))
	return waitForGo(ctx, result, err)
}

// trip fails when the event arrives. The compensation of trip waits for another event.
func (c *orchestrations) trip(ctx *perdure.OrchestrationContext, in string) (out string, err error) {
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := c.step(ctx, "undo "+in)
		_, err = waitForGo(ctx, "", err)
		return err
	})
	if out, err = c.step(ctx, in); err != nil {
		return "", err
	}
	if _, err = waitForGo(ctx, out, nil); err != nil {
		return "", err
	}
	return "", errors.New("sold out")
}

func (c *orchestrations) refill(ctx *perdure.OrchestrationContext, pieces *int, n int) (int, error) {
	_, err := c.step(ctx, "refill")
	*pieces += n
	return *pieces, err
}
