package perdure

// Go starts a coroutine of the orchestration. It is like Async for a function without results.
func Go(ctx *OrchestrationContext, fn func(*OrchestrationContext)) *Future[struct{}] {
	return Async(ctx, func(ctx *OrchestrationContext) (struct{}, error) {
		fn(ctx)
		return struct{}{}, nil
	})
}

// Async starts a coroutine of the orchestration and returns the future of its result. The result stays in memory and
// can have any type.
//
// Coroutines run one at a time: a coroutine runs until it waits, and then the next ready coroutine runs. They become
// ready in the same order in each replay, so the code needs no locks. fn first runs when its caller waits or ends. A
// panic in fn fails the orchestration. When the orchestration ends, coroutines that still run are abandoned. If the
// future is cancelled, it settles immediately and the result of fn is dropped.
//
// fn runs in the scope of ctx. When the scope is cancelled, the waits of fn end, fn continues, and the future settles
// when fn returns. To wait until fn has cleaned up, await the future with a context of WithoutCancel.
func Async[T any](ctx *OrchestrationContext, fn func(*OrchestrationContext) (T, error)) *Future[T] {
	f := &Future[T]{}
	f.task = ctx.replay.Go(func() {
		if v, err := fn(ctx); !f.task.IsDone() {
			f.value, f.err, f.loaded = v, err, true
		}
	})
	return f
}
