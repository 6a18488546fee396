// Package keptfutures stores futures in variables that no code reads.
package keptfutures

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

func send(context.Context, string) (string, error) { return "", nil }

func order(ctx *perdure.OrchestrationContext, in []string) (string, error) {
	sent := perdure.CallActivity(ctx, send, "a") // want `^warning: sent, which stores the future of perdure\.CallActivity, is never read: .*\[unawaited\]`
	_ = sent
	var all []*perdure.Future[string]
	for _, name := range in {
		all = append(all, perdure.CallActivity(ctx, send, name)) // want `all, which stores the future of .*, is never read.*\[unawaited\]`
	}
	slots := make([]*perdure.Future[string], len(in))
	for i, name := range in {
		slots[i] = perdure.CallActivity(ctx, send, name) // want `slots, which stores the future of .*, is never read.*\[unawaited\]`
	}
	byName := map[string]*perdure.Future[string]{}
	for _, name := range in {
		byName[name] = perdure.CallActivity(ctx, send, name) // want `byName, which stores the future of .*, is never read.*\[unawaited\]`
	}
	waits := []perdure.Awaitable{}
	waits = append(waits, perdure.CreateTimer(ctx, time.Hour)) // want `waits, which stores the future of perdure\.CreateTimer, is never read.*\[unawaited\]`
	var late = perdure.CreateTimer(ctx, time.Hour)             // want `late, which stores the future of .*, is never read.*\[unawaited\]`
	late = nil
	_ = late
	return "", nil
}
