package perdure

import (
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay/panics"
)

// MaxCustomStatusBytes is the maximum size of a custom status, encoded as JSON: 16 KiB.
const MaxCustomStatusBytes = 16 << 10

// SetCustomStatus sets the custom status of the instance, a value of any type that clients can read. It remains until
// the next call, and after the instance has ended. If the value does not change, nothing is recorded. SetCustomStatus
// panics if the value cannot be encoded as JSON or is larger than MaxCustomStatusBytes, which fails the orchestration
// unless it recovers.
func (ctx *OrchestrationContext) SetCustomStatus(v any) {
	doc, err := encodeWithin(payloadjson.CustomStatus(ctx.name), v, MaxCustomStatusBytes)
	if err != nil {
		panic(panics.Error(failureOf(err)))
	}
	ctx.replay.SetCustomStatus(doc)
}
