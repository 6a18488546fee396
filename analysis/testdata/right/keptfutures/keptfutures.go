// Package keptfutures stores futures and reads them.
package keptfutures

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

func send(context.Context, string) (string, error) { return "", nil }

// started has a named result.
func started(ctx *perdure.OrchestrationContext) (f *perdure.Future[string]) {
	f = perdure.CallActivity(ctx, send, "a")
	return
}

func order(ctx *perdure.OrchestrationContext, in []string) (string, error) {
	var all []*perdure.Future[string]
	slots := make([]*perdure.Future[string], len(in))
	byName := map[string]*perdure.Future[string]{}
	for i, name := range in {
		all = append(all, perdure.CallActivity(ctx, send, name))
		slots[i] = perdure.CallActivity(ctx, send, name)
		byName[name] = perdure.CallActivity(ctx, send, name)
	}
	for _, name := range in {
		if _, err := byName[name].Await(ctx); err != nil {
			return "", err
		}
	}
	if _, err := perdure.AwaitAll(ctx, all); err != nil {
		return "", err
	}
	if err := perdure.WhenAll(ctx, perdure.Awaitables(slots)...); err != nil {
		return "", err
	}
	// The engine sends messages even if their futures are dropped.
	told := perdure.RaiseEvent(ctx, "other", "done", "a")
	_ = told
	_ = perdure.CallUpdate[string](ctx, "other", "add", "a")
	perdure.CallEntity[struct{}](ctx, "log", "all", "add", "a")
	late := perdure.CreateTimer(ctx, time.Hour)
	check := func() bool { return late.IsDone() }
	var rest []perdure.Awaitable
	for _, f := range []*perdure.Future[string]{started(ctx)} {
		rest = append(rest, f)
	}
	_ = check()
	return "", perdure.WhenAll(ctx, append(rest, late)...)
}
