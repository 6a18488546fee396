package dispatch_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// addFamily adds orchestrations that start other orchestrations or continue as new.
func addFamily(r *perdure.Registry) {
	perdure.AddOrchestration(r, "parent", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallSubOrchestrationByName[int](ctx, "chain", n).Await(ctx)
	})
	perdure.AddOrchestration(r, "nested", nested)
	perdure.AddOrchestration(r, "children", children)
	perdure.AddOrchestration(r, "fails-until", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		// The instance ID ends with the number of the attempt.
		if id := ctx.InstanceID(); id[len(id)-2:] == fmt.Sprintf("~%d", n) {
			return n, nil
		}
		return 0, errors.New("not yet")
	})
	perdure.AddOrchestration(r, "failing-child", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute})
		return perdure.CallSubOrchestrationByName[int](ctx, "fails-until", n, retry).Await(ctx)
	})
	perdure.AddOrchestration(r, "taken", func(ctx *perdure.OrchestrationContext, id string) (string, error) {
		_, err := perdure.CallSubOrchestrationByName[int](ctx, "chain", 1, perdure.WithInstanceID(id)).Await(ctx)
		var failed *perdure.SubOrchestrationError
		if !errors.As(err, &failed) {
			return "", errors.New("a start with an ID in use succeeded")
		}
		return failed.Type, nil
	})
	perdure.AddOrchestration(r, "detaches", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		return perdure.StartOrchestration(ctx, "chain", n)
	})
	perdure.AddOrchestration(r, "waits-a-day", waitsADay)
	perdure.AddOrchestration(r, "gives-up-child", cancelsChild)
	perdure.AddOrchestration(r, "gives-up-work", cancelsActivity)
	addContinuing(r)
	addEventOrchestrations(r)
}

// waitsADay waits for the event "add" or for a day, and then for the event "end".
func waitsADay(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	first, err := perdure.Select(ctx, perdure.WaitForExternalEvent[int](ctx, "add"),
		perdure.CreateTimer(ctx, 24*time.Hour))
	if err != nil {
		return "", err
	}
	if _, err := perdure.WaitForExternalEvent[int](ctx, "end").Await(ctx); err != nil {
		return "", err
	}
	return []string{"event", "timer"}[first], nil
}

// cancelsChild calls the child "c" and cancels the call after the event "add". After the event "end", it returns the
// outcome.
func cancelsChild(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	below := perdure.CallSubOrchestrationByName[int](ctx, "nothing", 1, perdure.WithInstanceID("c"))
	return cancelsFuture(ctx, below)
}

// cancelsActivity does the same as cancelsChild with an activity.
func cancelsActivity(ctx *perdure.OrchestrationContext, n int) (string, error) {
	return cancelsFuture(ctx, perdure.CallActivity(ctx, inc, n))
}

// cancelsFuture cancels f after the event "add". After the event "end", it returns the outcome of f.
func cancelsFuture(ctx *perdure.OrchestrationContext, f *perdure.Future[int]) (string, error) {
	if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
		return "", err
	}
	f.Cancel("never mind")
	if _, err := perdure.WaitForExternalEvent[int](ctx, "end").Await(ctx); err != nil {
		return "", err
	}
	n, err := f.Await(ctx)
	return fmt.Sprintf("%d, %v", n, err), nil
}

// nested is a chain of children of children.
func nested(ctx *perdure.OrchestrationContext, depth int) (int, error) {
	if depth == 0 {
		return 0, nil
	}
	n, err := perdure.CallSubOrchestration(ctx, nested, depth-1).Await(ctx)
	return n + 1, err
}

// children runs n children concurrently and returns the sum of their results.
func children(ctx *perdure.OrchestrationContext, n int) (int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallSubOrchestration(ctx, chain, i+1))
	}
	return sumOf(ctx, fs)
}

// loop is the input of an orchestration that continues as new.
type loop struct{ Left, Counted int }

// addContinuing adds orchestrations that continue as new.
func addContinuing(r *perdure.Registry) {
	// again uses a timer, an activity and a detached start in every execution.
	again := func(ctx *perdure.OrchestrationContext, in loop) (string, error) {
		if in.Left == 0 {
			return fmt.Sprintf("%d left, %d counted", in.Left, in.Counted), nil
		}
		if err := perdure.Sleep(ctx, time.Minute); err != nil {
			return "", err
		}
		one, err := perdure.CallActivity(ctx, inc, in.Counted).Await(ctx)
		if err != nil {
			return "", err
		}
		if _, err := perdure.StartOrchestration(ctx, "nothing", in.Left); err != nil {
			return "", err
		}
		return perdure.ContinueAsNew[string](ctx, loop{in.Left - 1, one + 1})
	}
	perdure.AddOrchestration(r, "again-with", again)
	perdure.AddOrchestration(r, "again", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if n == 0 {
			return "", errors.New("nothing to count")
		}
		return perdure.CallSubOrchestrationByName[string](ctx, "again-with", loop{Left: n}).Await(ctx)
	})
	perdure.AddOrchestration(r, "again-at-once", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if n == 0 {
			return "done", nil
		}
		if _, err := perdure.StartOrchestration(ctx, "nothing", n); err != nil {
			return "", err
		}
		return perdure.ContinueAsNew[string](ctx, n-1)
	})
	perdure.AddOrchestration(r, "child-again", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		return perdure.CallSubOrchestrationByName[string](ctx, "again-child", loop{Left: n}).Await(ctx)
	})
	perdure.AddOrchestration(r, "again-child", func(ctx *perdure.OrchestrationContext, in loop) (string, error) {
		if in.Left == 0 {
			return fmt.Sprintf("%d left, %d counted", in.Left, in.Counted), nil
		}
		n, err := perdure.CallSubOrchestrationByName[int](ctx, "chain", in.Left).Await(ctx)
		if err != nil {
			return "", err
		}
		return perdure.ContinueAsNew[string](ctx, loop{in.Left - 1, in.Counted + n})
	})
	// sums adds up the values of the event "add" until one is 0. Every execution consumes two.
	perdure.AddOrchestration(r, "sums", func(ctx *perdure.OrchestrationContext, sum int) (int, error) {
		for range 2 {
			n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
			if err != nil || n == 0 {
				return sum, err
			}
			sum += n
		}
		return perdure.ContinueAsNew[int](ctx, sum)
	})
	// then-waits continues as new n times, and then adds up two events.
	perdure.AddOrchestration(r, "then-waits", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n > 0 {
			return perdure.ContinueAsNew[int](ctx, n-1)
		}
		one, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil {
			return 0, err
		}
		two, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		return one + two, err
	})
	perdure.AddOrchestration(r, "forever", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.ContinueAsNew[int](ctx, n+1)
	})
}
