// Package sharedfutures stores futures in slices, maps and arrays that no other variable shares.
package sharedfutures

import (
	"context"

	"github.com/perdure/perdure"
)

func send(context.Context, string) (string, error) { return "", nil }

type futures []*perdure.Future[string]

// add appends to its own copy of the slice.
func (f futures) add(ctx *perdure.OrchestrationContext) {
	f = append(f, perdure.CallActivity(ctx, send, "a")) // want `f, which stores the future of .*, is never read.*\[unawaited\]`
}

func order(ctx *perdure.OrchestrationContext, in []string) (string, error) {
	emptied := futures(nil)
	emptied = append(emptied, perdure.CallActivity(ctx, send, "a")) // want `emptied, which stores the future of .*, is never read.*\[unawaited\]`
	slots := make(futures, len(in))
	for i := range slots {
		slots[i] = perdure.CallActivity(ctx, send, "a") // want `slots, which stores the future of .*, is never read.*\[unawaited\]`
	}
	counted := make(futures, len(in))
	for i := 0; i < len(counted); i++ {
		counted[i] = perdure.CallActivity(ctx, send, "a") // want `counted, which stores the future of .*, is never read.*\[unawaited\]`
	}
	written := futures{perdure.CallActivity(ctx, send, "a")} // want `written, which stores the future of .*, is never read.*\[unawaited\]`
	_ = written
	byName := map[string]*perdure.Future[string]{"a": perdure.CallActivity(ctx, send, "a")} // want `byName, which stores the future of .*, is never read.*\[unawaited\]`
	byName["b"] = nil
	return "", nil
}

// Arrays are copied.
func copies(ctx *perdure.OrchestrationContext, pairs [][2]*perdure.Future[string]) (string, error) {
	own := pairs[0]
	own[1] = perdure.CallActivity(ctx, send, "a") // want `own, which stores the future of .*, is never read.*\[unawaited\]`
	for _, pair := range pairs {
		pair[0] = perdure.CallActivity(ctx, send, "a") // want `pair, which stores the future of .*, is never read.*\[unawaited\]`
	}
	fill(ctx, pairs[0])
	return joined(ctx, pairs[0][:])
}

func fill(ctx *perdure.OrchestrationContext, pair [2]*perdure.Future[string]) {
	pair[0] = perdure.CallActivity(ctx, send, "a") // want `pair, which stores the future of .*, is never read.*\[unawaited\]`
}

// Awaitables that are stored with others are not slices.
func last(ctx *perdure.OrchestrationContext, one perdure.Awaitable) (string, error) {
	either := one
	either = perdure.CallActivity(ctx, send, "a") // want `either, which stores the future of .*, is never read.*\[unawaited\]`
	_ = either
	return "", nil
}

func joined(ctx *perdure.OrchestrationContext, all futures) (string, error) {
	return "", perdure.WhenAll(ctx, perdure.Awaitables(all)...)
}
