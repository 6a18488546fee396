package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func children() []Scenario {
	return []Scenario{
		{Name: "Child", Register: body(parent), Input: 3, Check: gives(3)},
		{Name: "NestedChildren", Register: body(nested), Input: 3, Check: gives([]int{3, 2, 1, 0})},
		{Name: "FanOutOfChildren", Register: body(family), Input: 4, Check: gives(4 * 5 / 2)},
		{Name: "ChildThatContinuesAsNew", Register: body(parentOfLoop), Input: 2, Check: gives("2 counted")},
	}
}

func failingChildren() []Scenario {
	return []Scenario{
		{Name: "ChildOfATakenID", Register: body(taken), Check: gives("already_exists")},
		{
			Name: "TerminatedChild", Register: body(waitsForChild), Drive: terminatesChild,
			Check: gives("terminated: enough"),
		},
		{
			Name: "ChildWithAnIDOfItsOwn", Register: body(waitsForChild), Drive: tellsChild,
			Check: gives("none: by itself"),
		},
	}
}

func parent(ctx *perdure.OrchestrationContext, n int) (int, error) {
	return perdure.CallSubOrchestrationByName[int](ctx, "Counts", n).Await(ctx)
}

// nested is a child of a child of a child.
func nested(ctx *perdure.OrchestrationContext, depth int) ([]int, error) {
	if depth == 0 {
		return []int{0}, nil
	}
	below, err := perdure.CallSubOrchestrationByName[[]int](ctx, "NestedChildren", depth-1).Await(ctx)
	return append([]int{depth}, below...), err
}

// family runs n children at once, and adds up.
func family(ctx *perdure.OrchestrationContext, n int) (int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallSubOrchestrationByName[int](ctx, "Counts", i+1))
	}
	return total(ctx, fs)
}

// taken calls a child by the id that it has itself.
func taken(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	_, err := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 1,
		perdure.WithInstanceID(ctx.InstanceID())).Await(ctx)
	return typeOf(err), nil
}

func waitsForChild(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	text, err := perdure.CallSubOrchestrationByName[string](ctx, "Waits", nil,
		perdure.WithInstanceID(ctx.InstanceID()+"/child")).Await(ctx)
	if failed, ok := errors.AsType[*perdure.SubOrchestrationError](err); ok {
		return fmt.Sprintf("%s: %s", failed.Type, failed.Message), nil
	}
	return "none: " + text, err
}

func terminatesChild(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id+"/child", "waiting"); err != nil {
		return err
	}
	return w.Client.Terminate(ctx, id+"/child", "enough")
}

func tellsChild(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id+"/child", "waiting"); err != nil {
		return err
	}
	return w.Client.RaiseEvent(ctx, id+"/child", "go", "by itself")
}

func detached(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "Detached", Register: body(detaches), Input: tick,
			Check: all(gives("went on"), besides("/detached", "slept")),
		},
		{
			Name: "ManyDetached", Register: body(detachesMany), Input: 12,
			Check: all(gives(12), besides("/0", "hello, 0"), besides("/11", "hello, 11")),
		},
	}
}

// detaches starts what outlives it.
func detaches(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	_, err := perdure.StartOrchestration(ctx, "Sleeps", 5*tick, perdure.WithInstanceID(ctx.InstanceID()+"/detached"))
	return "went on", err
}

func detachesMany(ctx *perdure.OrchestrationContext, n int) (int, error) {
	for i := range n {
		id := fmt.Sprintf("%s/%d", ctx.InstanceID(), i)
		if _, err := perdure.StartOrchestration(ctx, "Hello-detached", strconv.Itoa(i),
			perdure.WithInstanceID(id)); err != nil {
			return i, err
		}
	}
	return n, nil
}

// besides: there is another instance, which completes with this output.
func besides(suffix string, want any) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		other, err := c.Wait(ctx, s.InstanceID+suffix)
		if err != nil {
			return err
		}
		return gives(want)(ctx, c, other)
	}
}
