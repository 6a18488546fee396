package scenarios

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
)

// pausing is what comes to an instance that stands still.
func pausing(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "PausedAndResumed", Register: body(hears), Input: tick, Drive: pausesAndResumes,
			Check: all(heardAsItCame, customStatus(`"heard c"`)),
		},
	}
}

// hears tells what comes, in the order in which it does: three words, a timer, and an activity that ends behind that.
func hears(ctx *perdure.OrchestrationContext, tick time.Duration) (heard []string, err error) {
	hear := func(what string, err error) {
		if err != nil {
			what = err.Error()
		}
		heard = append(heard, what)
		ctx.SetCustomStatus("heard " + what)
	}
	timer, rest := perdure.CreateTimer(ctx, 5*tick), perdure.CallActivity(ctx, nap, 9*tick)
	ctx.SetCustomStatus("waiting")
	err = perdure.WhenAll(ctx,
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			_, err := timer.Await(ctx)
			hear("timer", err)
		}),
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) { hear(rest.Await(ctx)) }),
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			for range 3 {
				hear(perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx))
			}
		}),
	)
	return heard, err
}

// pausesAndResumes pauses the instance while its activity runs, before its timer is due, and has it go on when all has
// come. Each order is given twice, as by a client that had no answer.
func pausesAndResumes(ctx context.Context, w World, id string) error {
	paused, err := w.pauses(ctx, id)
	if err != nil {
		return err
	}
	for _, words := range [][]string{{"a", "b"}, {"c"}} {
		if err := says(words...)(ctx, w, id); err != nil {
			return err
		}
		if err := w.untilCame(ctx, id, append(words, "a", "b", "timer", "rested")); err != nil {
			return err
		}
	}
	switch s, err := w.Client.Status(ctx, id); {
	case err != nil:
		return err
	case s.Status != client.StatusPaused || s.Paused == nil || s.Paused.Message != reasonToPause ||
		string(s.CustomStatus) != string(paused.CustomStatus):
		return fmt.Errorf("it stood still with custom status %s, and is %s with %s, %+v", paused.CustomStatus, s.Status,
			s.CustomStatus, s.Paused)
	}
	if err := w.Client.Resume(ctx, id, "it is well"); err != nil {
		return err
	}
	err = w.Client.Resume(ctx, id, "it is well")
	if errors.Is(err, client.ErrNotPaused) || errors.Is(err, client.ErrEnded) { // it goes on, or is over by now
		return nil
	}
	return err
}

const reasonToPause = "to look at it"

// pauses has an instance that waits stand still, and returns it once it does.
func (w World) pauses(ctx context.Context, id string) (paused client.Status, err error) {
	if err := w.untilStatus(ctx, id, "waiting"); err != nil {
		return paused, err
	}
	for range 2 {
		if err := w.Client.Pause(ctx, id, reasonToPause); err != nil {
			return paused, err
		}
	}
	err = w.until(ctx, id, func(s client.Status) bool {
		paused = s
		return s.Status == client.StatusPaused
	})
	return paused, err
}

// untilCame lets time pass until all of this has come to an instance.
func (w World) untilCame(ctx context.Context, id string, want []string) (err error) {
	var came []string
	for range looks {
		came, err = whatCame(ctx, w.Client, id)
		if err == nil && !slices.ContainsFunc(want, func(what string) bool { return !slices.Contains(came, what) }) {
			return nil
		}
		w.Pass(w.Tick / 4)
	}
	return errors.Join(fmt.Errorf("%q have come to instance %q, want %q", came, id, want), err)
}

// whatCame is what history says has come to an instance, in that order: to its code, or while it was paused. What it
// had parked, the turn that takes it records again.
func whatCame(ctx context.Context, c *client.Client, id string) (came []string, err error) {
	for e, err := range c.History(ctx, id) {
		if err != nil {
			return nil, err
		}
		for _, in := range append(e.Inputs, e) {
			if what, some := cameAs(&in); some && !slices.Contains(came, what) {
				came = append(came, what)
			}
		}
	}
	return came, nil
}

// cameAs is what the code hears of an event, if it hears anything.
func cameAs(e *history.Event) (what string, some bool) {
	switch e.Kind { //nolint:exhaustive // nothing else comes to it
	case history.ExternalEventRaised:
		return text(e.Data), true
	case history.ActivityCompleted:
		return text(e.Result), true
	case history.ActivityFailed:
		return e.Error.Message, true
	case history.TimerFired:
		return "timer", true
	}
	return "", false
}

// text is what a payload says that is a text.
func text(p history.Payload) (s string) {
	doc, _ := p.Document()
	if err := json.Unmarshal(doc, &s); err != nil {
		return err.Error()
	}
	return s
}

// heardAsItCame: the instance has heard what came to it, in that order, and all of it was to come.
func heardAsItCame(ctx context.Context, c *client.Client, s client.Status) error {
	heard, err := client.Result[[]string](s)
	if err != nil {
		return err
	}
	came, err := whatCame(ctx, c, s.InstanceID)
	if err == nil && !slices.Equal(heard, came) {
		err = fmt.Errorf("it heard %q, and there came %q", heard, came)
	}
	if all := slices.Sorted(slices.Values(heard)); err == nil && !slices.Equal(all, []string{
		"a", "b", "c", "rested", "timer",
	}) {
		err = fmt.Errorf("it heard %q", all)
	}
	return err
}
