// Package keptfutures keeps futures where nothing reads them.
package keptfutures

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

func send(context.Context, string) (string, error) { return "", nil }

func order(ctx *perdure.OrchestrationContext, in []string) (string, error) {
	sent := perdure.CallActivity(ctx, send, "a") // want `^warning: nothing reads sent, which the future of perdure\.CallActivity is kept in: .*\[unawaited\]`
	_ = sent
	var all []*perdure.Future[string]
	for _, name := range in {
		all = append(all, perdure.CallActivity(ctx, send, name)) // want `nothing reads all, which .*\[unawaited\]`
	}
	slots := make([]*perdure.Future[string], len(in))
	for i, name := range in {
		slots[i] = perdure.CallActivity(ctx, send, name) // want `nothing reads slots, which .*\[unawaited\]`
	}
	byName := map[string]*perdure.Future[string]{}
	for _, name := range in {
		byName[name] = perdure.CallActivity(ctx, send, name) // want `nothing reads byName, which .*\[unawaited\]`
	}
	waits := []perdure.Awaitable{}
	waits = append(waits, perdure.CreateTimer(ctx, time.Hour)) // want `nothing reads waits, which the future of perdure\.CreateTimer .*\[unawaited\]`
	var late = perdure.CreateTimer(ctx, time.Hour)             // want `nothing reads late, which .*\[unawaited\]`
	late = nil
	_ = late
	return "", nil
}
