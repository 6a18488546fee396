package instances

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// pauseScenarios send inputs to a paused instance.
func pauseScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "PausedAndResumed", Register: kit.Run(collectInputs), Input: tick, Drive: pauseAndResume,
			Check: kit.All(collectedInOrder, kit.CustomStatus(`"received c"`)),
		},
	}
}

// collectInputs returns its inputs in the order of their arrival: three words, a timer, and the result of an activity
// that ends after the timer.
func collectInputs(ctx *perdure.OrchestrationContext, tick time.Duration) (inputs []string, err error) {
	add := func(what string, err error) {
		if err != nil {
			what = err.Error()
		}
		inputs = append(inputs, what)
		ctx.SetCustomStatus("received " + what)
	}
	timer, rest := perdure.CreateTimer(ctx, 5*tick), perdure.CallActivity(ctx, kit.Nap, 9*tick)
	ctx.SetCustomStatus("waiting")
	err = perdure.WhenAll(ctx,
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			_, err := timer.Await(ctx)
			add("timer", err)
		}),
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) { add(rest.Await(ctx)) }),
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			for range 3 {
				add(perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx))
			}
		}),
	)
	return inputs, err
}

// pauseAndResume pauses the instance while its activity runs and before its timer is due. It resumes the instance when
// all inputs have arrived. Each call is repeated.
func pauseAndResume(ctx context.Context, w kit.World, id string) error {
	paused, err := pauseTwice(ctx, w, id)
	if err != nil {
		return err
	}
	for _, words := range [][]string{{"a", "b"}, {"c"}} {
		if err := kit.RaiseWords(words...)(ctx, w, id); err != nil {
			return err
		}
		if err := untilInputs(ctx, w, id, append(words, "a", "b", "timer", "rested")); err != nil {
			return err
		}
	}
	switch s, err := w.Client.Status(ctx, id); {
	case err != nil:
		return err
	case s.Status != client.StatusPaused || s.Paused == nil || s.Paused.Message != pauseMessage ||
		string(s.CustomStatus) != string(paused.CustomStatus):
		return fmt.Errorf("paused with custom status %s, is now %s with %s, %+v", paused.CustomStatus, s.Status,
			s.CustomStatus, s.Paused)
	}
	if err := w.Client.Resume(ctx, id, "it is well"); err != nil {
		return err
	}
	err = w.Client.Resume(ctx, id, "it is well")
	if errors.Is(err, client.ErrNotPaused) || errors.Is(err, client.ErrEnded) { // it continues, or has ended
		return nil
	}
	return err
}

const pauseMessage = "to look at it"

// pauseTwice pauses a waiting instance and returns its status when it is paused.
func pauseTwice(ctx context.Context, w kit.World, id string) (paused client.Status, err error) {
	if err := w.UntilStatus(ctx, id, "waiting"); err != nil {
		return paused, err
	}
	for range 2 {
		if err := w.Client.Pause(ctx, id, pauseMessage); err != nil {
			return paused, err
		}
	}
	err = w.Until(ctx, id, func(s client.Status) bool {
		paused = s
		return s.Status == client.StatusPaused
	})
	return paused, err
}

// untilInputs lets time pass until the inputs of an instance have arrived.
func untilInputs(ctx context.Context, w kit.World, id string, want []string) (err error) {
	var came []string
	if w.Poll(func() bool {
		came, err = inputsOf(ctx, w.Client, id)
		return err == nil && !slices.ContainsFunc(want, func(what string) bool { return !slices.Contains(came, what) })
	}) {
		return nil
	}
	return errors.Join(fmt.Errorf("inputs %q arrived at instance %q, want %q", came, id, want), err)
}

// inputsOf returns the inputs in the history of an instance in their order, including parked ones. The turn that
// consumes a parked input records it again.
func inputsOf(ctx context.Context, c *client.Client, id string) (came []string, err error) {
	for e, err := range c.History(ctx, id) {
		if err != nil {
			return nil, err
		}
		for _, in := range append(e.Inputs, e) {
			if what, some := inputText(&in); some && !slices.Contains(came, what) {
				came = append(came, what)
			}
		}
	}
	return came, nil
}

// inputText returns the text that collectInputs records for an event, if any.
func inputText(e *history.Event) (what string, some bool) {
	switch e.Kind { //nolint:exhaustive // the code has no other inputs
	case history.ExternalEventRaised:
		return textOf(e.Data), true
	case history.ActivityCompleted:
		return textOf(e.Result), true
	case history.ActivityFailed:
		return e.Error.Message, true
	case history.TimerFired:
		return "timer", true
	}
	return "", false
}

// textOf returns the text in a payload.
func textOf(p history.Payload) (s string) {
	doc, _ := p.Document()
	if err := json.Unmarshal(doc, &s); err != nil {
		return err.Error()
	}
	return s
}

// collectedInOrder checks that the instance processed all inputs in the order of their arrival.
func collectedInOrder(ctx context.Context, c *client.Client, s client.Status) error {
	inputs, err := client.Result[[]string](s)
	if err != nil {
		return err
	}
	came, err := inputsOf(ctx, c, s.InstanceID)
	if err == nil && !slices.Equal(inputs, came) {
		err = fmt.Errorf("processed %q, history has %q", inputs, came)
	}
	if all := slices.Sorted(slices.Values(inputs)); err == nil && !slices.Equal(all, []string{
		"a", "b", "c", "rested", "timer",
	}) {
		err = fmt.Errorf("processed %q", all)
	}
	return err
}
