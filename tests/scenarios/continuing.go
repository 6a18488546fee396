package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func continuing(tick time.Duration) []Scenario {
	const events = 12
	return []Scenario{
		{
			Name: "ContinueAsNew", Register: body(counting), Input: Count{Left: 3},
			Check: all(gives("3 counted"), executions(4)),
		},
		{
			Name: "ContinueAsNewChainOf100", Register: body(counting), Input: Count{Left: 99}, Long: true,
			Check: all(gives("99 counted"), executions(100)),
		},
		{Name: "ContinueAsNewAtOnce", Register: body(atOnce), Input: 4, Check: all(gives("over"), executions(5))},
		{
			Name: "ContinueAsNewIsAnew", Register: body(anew), Input: []string{},
			Check: all(gives("all differ"), executions(3)),
		},
		{
			Name: "ContinueAsNewGivesUpWhatIsOutstanding", Register: body(givesUp), Input: Saying{first, tick},
			Check: all(gives(second), executions(2)),
		},
		{
			Name: "ContinueAsNewCancelsAChild", Register: body(leavesChild), Input: Saying{first, tick},
			Check: all(gives(second), executions(2),
				cancelledBeside("/child", "orchestration_terminal_continued_as_new")),
		},
		{
			Name: "EternalWithEventsInFlight", Register: body(eternal), Input: Sum{Tick: tick},
			Drive: keepsRaising(events), Check: all(gives(events*(events+1)/2), executions(events/2+1)),
		},
	}
}

// What executions say: the first, and those that are not.
const (
	first  = "first"
	second = "second"
)

// Count is what is left to count.
type Count struct{ Left, Counted int }

// counting counts by an activity, one in each execution.
func counting(ctx *perdure.OrchestrationContext, c Count) (string, error) {
	if c.Left == 0 {
		return fmt.Sprintf("%d counted", c.Counted), nil
	}
	n, err := perdure.CallActivity(ctx, inc, c.Counted).Await(ctx)
	if err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, Count{c.Left - 1, n})
}

func parentOfLoop(ctx *perdure.OrchestrationContext, n int) (string, error) {
	return perdure.CallSubOrchestrationByName[string](ctx, "Counting", Count{Left: n}).Await(ctx)
}

// atOnce waits for nothing, and starts something on its way.
func atOnce(ctx *perdure.OrchestrationContext, n int) (string, error) {
	if n == 0 {
		return "over", nil
	}
	if _, err := perdure.StartOrchestration(ctx, "Hello-detached", strconv.Itoa(n)); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, n-1)
}

// anew collects what must differ from execution to execution.
func anew(ctx *perdure.OrchestrationContext, seen []string) (string, error) {
	for _, s := range []string{ctx.ExecutionID(), ctx.NewUUID(), strconv.FormatUint(ctx.Rand().Uint64(), 10)} {
		if slices.Contains(seen, s) {
			return "", fmt.Errorf("%s again", s)
		}
		seen = append(seen, s)
	}
	if len(seen) == 9 {
		return "all differ", nil
	}
	return perdure.ContinueAsNew[string](ctx, seen)
}

// givesUp leaves an activity behind whose result arrives while the next execution waits for one of the same event id.
//
//perdure:ignore unawaited what becomes of it is what the scenario shows
func givesUp(ctx *perdure.OrchestrationContext, s Saying) (string, error) {
	tick := s.After
	if s.Text == second {
		s.After *= 8
		return perdure.CallActivity(ctx, say, s).Await(ctx)
	}
	s.After *= 4
	perdure.CallActivity(ctx, say, s)
	if err := perdure.Sleep(ctx, tick); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, Saying{second, tick})
}

// leavesChild goes on to an execution that waits for an activity of the event id that the child of the first has.
//
//perdure:ignore unawaited what becomes of it is what the scenario shows
func leavesChild(ctx *perdure.OrchestrationContext, s Saying) (string, error) {
	if s.Text == second {
		return perdure.CallActivity(ctx, say, Saying{s.Text, 8 * s.After}).Await(ctx)
	}
	perdure.CallSubOrchestrationByName[string](ctx, "Sleeps", 4*s.After,
		perdure.WithInstanceID(ctx.InstanceID()+"/child"))
	if err := perdure.Sleep(ctx, s.After); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, Saying{second, s.After})
}

// Sum is what has been added up so far.
type Sum struct {
	Sum  int
	Tick time.Duration
}

// eternal adds up what the events bring, until one brings 0. Each execution first rests a bit, so that events come
// meanwhile, and takes two: the others go on to the next.
func eternal(ctx *perdure.OrchestrationContext, s Sum) (int, error) {
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

// keepsRaising raises events without waiting for anything, and all of them again when they have been seen: beyond the
// time in which the queue itself knows duplicates.
func keepsRaising(events int) func(ctx context.Context, w World, id string) error {
	return func(ctx context.Context, w World, id string) error {
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
