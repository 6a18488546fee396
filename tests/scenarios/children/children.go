package children

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func childScenarios() []kit.Scenario {
	return []kit.Scenario{
		{Name: "Child", Register: kit.Run(callChild), Input: 3, Check: kit.Returns(3)},
		{Name: "NestedChildren", Register: kit.Run(nested), Input: 3, Check: kit.Returns([]int{3, 2, 1, 0})},
		{Name: "FanOutOfChildren", Register: kit.Run(fanOutChildren), Input: 4, Check: kit.Returns(4 * 5 / 2)},
		{Name: "ChildThatContinuesAsNew", Register: kit.Run(callCounting), Input: 2, Check: kit.Returns("2 counted")},
	}
}

func childFailureScenarios() []kit.Scenario {
	return []kit.Scenario{
		{Name: "ChildIDInUse", Register: kit.Run(callOwnID), Check: kit.Returns("already_exists")},
		{
			Name: "TerminatedChild", Register: kit.Run(awaitChild), Drive: terminateChild,
			Check: kit.Returns("terminated: enough"),
		},
		{
			Name: "ChildWithInstanceID", Register: kit.Run(awaitChild), Drive: raiseInChild,
			Check: kit.Returns("none: by itself"),
		},
	}
}

func callChild(ctx *perdure.OrchestrationContext, n int) (int, error) {
	return perdure.CallSubOrchestrationByName[int](ctx, "Counts", n).Await(ctx)
}

// nested calls itself as a child, down to a depth of 0.
func nested(ctx *perdure.OrchestrationContext, depth int) ([]int, error) {
	if depth == 0 {
		return []int{0}, nil
	}
	below, err := perdure.CallSubOrchestrationByName[[]int](ctx, "NestedChildren", depth-1).Await(ctx)
	return append([]int{depth}, below...), err
}

// fanOutChildren runs n children concurrently and adds their results.
func fanOutChildren(ctx *perdure.OrchestrationContext, n int) (int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallSubOrchestrationByName[int](ctx, "Counts", i+1))
	}
	return kit.SumOf(ctx, fs)
}

// callOwnID calls a child with its own instance ID.
func callOwnID(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	_, err := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 1,
		perdure.WithInstanceID(ctx.InstanceID())).Await(ctx)
	return kit.FailureType(err), nil
}

func awaitChild(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	text, err := perdure.CallSubOrchestrationByName[string](ctx, "Waits", nil,
		perdure.WithInstanceID(ctx.InstanceID()+"/child")).Await(ctx)
	if failed, ok := errors.AsType[*perdure.SubOrchestrationError](err); ok {
		return fmt.Sprintf("%s: %s", failed.Type, failed.Message), nil
	}
	return "none: " + text, err
}

func terminateChild(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id+"/child", "waiting"); err != nil {
		return err
	}
	return w.Client.Terminate(ctx, id+"/child", "enough")
}

func raiseInChild(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id+"/child", "waiting"); err != nil {
		return err
	}
	return w.Client.RaiseEvent(ctx, id+"/child", "go", "by itself")
}

func detachedScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "Detached", Register: kit.Run(startDetached), Input: tick,
			Check: kit.All(kit.Returns("continued"), kit.OtherReturns("/detached", "slept")),
		},
		{
			Name: "ManyDetached", Register: kit.Run(startManyDetached), Input: 12,
			Check: kit.All(kit.Returns(12), kit.OtherReturns("/0", "hello, 0"), kit.OtherReturns("/11", "hello, 11")),
		},
	}
}

// startDetached starts an orchestration that outlives it.
func startDetached(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	_, err := perdure.StartOrchestration(ctx, "Sleeps", 5*tick, perdure.WithInstanceID(ctx.InstanceID()+"/detached"))
	return "continued", err
}

func startManyDetached(ctx *perdure.OrchestrationContext, n int) (int, error) {
	for i := range n {
		id := fmt.Sprintf("%s/%d", ctx.InstanceID(), i)
		if _, err := perdure.StartOrchestration(ctx, "Hello-detached", strconv.Itoa(i),
			perdure.WithInstanceID(id)); err != nil {
			return i, err
		}
	}
	return n, nil
}
