package perdure

import "github.com/perdure/perdure/internal/names"

// WaitForExternalEvent returns the future of the next external event of that name. Events are buffered: an event can
// arrive before the orchestration waits for it. Several events of one name settle futures in the order in which the
// events arrived and the futures were created. An event whose ID this execution has already received is dropped.
//
// The code consumes an event when it learns of it: by Await, because its future wins a WhenAny or Select, or because
// its future is one of a WhenAll. If the future is cancelled before, for example because it loses a Select, the event
// returns to the head of its queue. A future that is no longer awaited still takes an event, so cancel it. Events that
// are not consumed are passed to the next execution when the orchestration continues as new, and are dropped when it
// ends.
//
// The data is decoded from JSON into a T. If the decoding fails, Await returns an error and the event is consumed.
// WaitForExternalEvent panics if name is empty or not valid UTF-8.
func WaitForExternalEvent[T any](ctx *OrchestrationContext, name string) *Future[T] {
	names.Must("external event", name)
	return &Future[T]{task: ctx.replay.WaitForExternalEvent(name)}
}
