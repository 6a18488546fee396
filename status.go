package perdure

// MaxCustomStatusBytes is the limit of an encoded custom status: 16 KiB. It lies in the instance item, which lists and waits
// read again and again.
const MaxCustomStatusBytes = 16 << 10

// SetCustomStatus sets what clients see as the instance's custom status: how far it has come, in a form of the program's
// own. It lasts until it is set again, and is there after the instance has ended. Setting the same value again records nothing.
//
// A value that does not encode, or of more than MaxCustomStatusBytes, panics, which fails the orchestration with an
// error that names the reason, unless it recovers.
func (ctx *OrchestrationContext) SetCustomStatus(v any) {
	doc, err := encodeWithin(payload{customStatus, orchestration, ctx.name}, v, MaxCustomStatusBytes)
	if err != nil {
		panic(&fatal{failureOf(err)})
	}
	ctx.replay.SetCustomStatus(doc)
}
