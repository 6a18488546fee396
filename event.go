package perdure

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// WaitForExternalEvent returns the future of the next external event of that name. Events are buffered: one that was raised
// before it was waited for is there at once, and several of one name are handed out in the order in which they
// arrived, to futures in the order in which they were made. An event whose id this execution has seen before is dropped.
//
// An event is consumed when the code learns of it: by Await, or because its future wins a WhenAny or Select, or is among those of a
// WhenAll. One whose future is cancelled before, as by losing a Select, goes back to the head of its queue. A future that is
// merely forgotten, as after WhenAny, keeps its place and takes an event away: cancel it. What was not consumed goes on
// to the next execution when the orchestration continues as new, and is gone when it ends.
//
// The data decodes into T; data that does not fit is an error of Await, and the event is consumed. An empty name panics.
func WaitForExternalEvent[T any](ctx *OrchestrationContext, name string) *Future[T] {
	mustName("external event", name)
	return &Future[T]{task: ctx.replay.WaitForExternalEvent(name)}
}

// payloadOf names what a task hands out, for errors.
func payloadOf(t *replay.Task) payload {
	switch t.Kind() {
	case history.ExternalEventSubscribed, history.ExternalEventSent:
		return payload{data, externalEvent, t.Name()}
	case history.UpdateSent:
		return payload{output, update, t.Name()}
	case history.SubOrchestrationScheduled:
		return payload{result, orchestration, t.Name()}
	default:
		return payload{result, activity, t.Name()}
	}
}
