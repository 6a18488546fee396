package children

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func continueScenarios(tick time.Duration) []kit.Scenario {
	const events = 12
	return []kit.Scenario{
		{
			Name: "ContinueAsNew", Register: kit.Run(counting), Input: CountInput{Left: 3},
			Check: kit.All(kit.Returns("3 counted"), kit.Executions(4)),
		},
		{
			Name: "ContinueAsNewChainOf100", Register: kit.Run(counting), Input: CountInput{Left: 99}, Long: true,
			Check: kit.All(kit.Returns("99 counted"), kit.Executions(100)),
		},
		{
			Name: "ContinueAsNewAtOnce", Register: kit.Run(continueAtOnce), Input: 4,
			Check: kit.All(kit.Returns("over"), kit.Executions(5)),
		},
		{
			Name: "ContinueAsNewHasNewIDs", Register: kit.Run(collectUnique), Input: []string{},
			Check: kit.All(kit.Returns("all differ"), kit.Executions(3)),
		},
		{
			Name: "ContinueAsNewCancelsOutstandingTasks", Register: kit.Run(leaveActivity),
			Input: kit.SayInput{Text: kit.First, After: tick},
			Check: kit.All(kit.Returns(kit.Second), kit.Executions(2)),
		},
		{
			Name: "ContinueAsNewCancelsAChild", Register: kit.Run(leaveChild),
			Input: kit.SayInput{Text: kit.First, After: tick},
			Check: kit.All(kit.Returns(kit.Second), kit.Executions(2),
				kit.OtherCancelled("/child", "orchestration_terminal_continued_as_new")),
		},
		{
			Name: "EternalWithEventsInFlight", Register: kit.Run(sumEvents), Input: SumInput{Tick: tick},
			Drive: raiseNumbers(events), Check: kit.All(kit.Returns(events*(events+1)/2), kit.Executions(events/2+1)),
		},
	}
}

// CountInput has the number of executions left and the count so far.
type CountInput struct{ Left, Counted int }

// counting counts with an activity, once in each execution.
func counting(ctx *perdure.OrchestrationContext, c CountInput) (string, error) {
	if c.Left == 0 {
		return fmt.Sprintf("%d counted", c.Counted), nil
	}
	n, err := perdure.CallActivity(ctx, kit.Inc, c.Counted).Await(ctx)
	if err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, CountInput{c.Left - 1, n})
}

func callCounting(ctx *perdure.OrchestrationContext, n int) (string, error) {
	return perdure.CallSubOrchestrationByName[string](ctx, "Counting", CountInput{Left: n}).Await(ctx)
}

// continueAtOnce continues as new without a wait, and starts an orchestration each time.
func continueAtOnce(ctx *perdure.OrchestrationContext, n int) (string, error) {
	if n == 0 {
		return "over", nil
	}
	if _, err := perdure.StartOrchestration(ctx, "Hello-detached", strconv.Itoa(n)); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, n-1)
}

// collectUnique collects values that must differ between executions.
func collectUnique(ctx *perdure.OrchestrationContext, seen []string) (string, error) {
	for _, s := range []string{ctx.ExecutionID(), ctx.NewUUID(), strconv.FormatUint(ctx.Rand().Uint64(), 10)} {
		if slices.Contains(seen, s) {
			return "", fmt.Errorf("%s is not unique", s)
		}
		seen = append(seen, s)
	}
	if len(seen) == 9 {
		return "all differ", nil
	}
	return perdure.ContinueAsNew[string](ctx, seen)
}

// leaveActivity continues as new while an activity runs. The result arrives while the next execution waits for an
// activity with the same event ID.
//
//perdure:ignore unawaited the scenario tests it
func leaveActivity(ctx *perdure.OrchestrationContext, s kit.SayInput) (string, error) {
	tick := s.After
	if s.Text == kit.Second {
		s.After *= 8
		return perdure.CallActivity(ctx, kit.Say, s).Await(ctx)
	}
	s.After *= 4
	perdure.CallActivity(ctx, kit.Say, s)
	if err := perdure.Sleep(ctx, tick); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, kit.SayInput{Text: kit.Second, After: tick})
}

// leaveChild continues as new while a child runs. The next execution waits for an activity with the event ID of that
// child.
//
//perdure:ignore unawaited the scenario tests it
func leaveChild(ctx *perdure.OrchestrationContext, s kit.SayInput) (string, error) {
	if s.Text == kit.Second {
		return perdure.CallActivity(ctx, kit.Say, kit.SayInput{Text: s.Text, After: 8 * s.After}).Await(ctx)
	}
	perdure.CallSubOrchestrationByName[string](ctx, "Sleeps", 4*s.After,
		perdure.WithInstanceID(ctx.InstanceID()+"/child"))
	if err := perdure.Sleep(ctx, s.After); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, kit.SayInput{Text: kit.Second, After: s.After})
}

// SumInput is the sum so far.
type SumInput struct {
	Sum  int
	Tick time.Duration
}

// sumEvents adds the numbers of events until one is 0. Each execution sleeps first, so that events arrive in the
// meantime, and takes two events. The others are carried over.
func sumEvents(ctx *perdure.OrchestrationContext, s SumInput) (int, error) {
	if err := perdure.Sleep(ctx, s.Tick); err != nil {
		return 0, err
	}
	for range 2 {
		n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil || n == 0 {
			return s.Sum, err
		}
		s.Sum += n
	}
	return perdure.ContinueAsNew[int](ctx, s)
}

// raiseNumbers raises events without a wait, and repeats them after the deduplication interval of the queue.
func raiseNumbers(events int) func(ctx context.Context, w kit.World, id string) error {
	return func(ctx context.Context, w kit.World, id string) error {
		for range 2 {
			for n := 1; n <= events; n++ {
				if err := w.Client.RaiseEvent(ctx, id, "add", n, client.WithEventID(strconv.Itoa(n))); err != nil {
					return err
				}
			}
			w.Pass(6 * w.Tick)
		}
		return w.Client.RaiseEvent(ctx, id, "add", 0)
	}
}
