package perdure

// Go starts a coroutine of the orchestration: code that goes on while the caller waits for something else. It is Async
// without a value.
func Go(ctx *OrchestrationContext, fn func(*OrchestrationContext)) *Future[struct{}] {
	return Async(ctx, func(ctx *OrchestrationContext) (struct{}, error) {
		fn(ctx)
		return struct{}{}, nil
	})
}

// Async starts a coroutine of the orchestration and returns the future of what fn returns; the value stays in memory and may be of
// any type.
//
// Coroutines take turns: one runs until it waits, then the next that can go on does, in the order in which they became able to. So
// they need no locks, and the order is the same in each replay. fn first runs when its caller waits or ends. A panic in it
// fails the orchestration; when the orchestration ends, what still runs is given up. Cancelling the future settles it, and
// what fn returns later is dropped.
//
// fn is in the scope of ctx. When that is cancelled fn goes on: its waits end, its future settles when it returns. To wait until it
// has cleaned up, wait through WithoutCancel.
func Async[T any](ctx *OrchestrationContext, fn func(*OrchestrationContext) (T, error)) *Future[T] {
	f := &Future[T]{}
	f.task = ctx.replay.Go(func() {
		if v, err := fn(ctx); !f.task.IsDone() {
			f.value, f.err, f.loaded = v, err, true
		}
	})
	return f
}
