package perdure

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// MaxQueryAnswerBytes is the limit of the encoded answer to a query: 1 MiB. It is stored nowhere, and travels in one answer of Lambda, which
// takes 6 MB; its input has the limit of every other, MaxPayloadBytes.
const MaxQueryAnswerBytes = 1 << 20

// maxQueryNameBytes is the limit of a query's name.
const maxQueryNameBytes = 256

// SetQueryHandler has handler answer the queries of a name, which clients ask (Client.Query), from here on; the last one that is set for a
// name counts. Set it at the beginning, before the orchestration waits: an instance that has not come so far does not know the query. An
// execution that follows by continue-as-new sets its own.
//
// A query brings the code to where it stands by replay, in memory of its own, calls handler on that, and forgets all of it. So handler
// sees the variables of the orchestration as its last turn left them, and what it changes is lost. It must only read them: a handler that
// schedules, waits, or calls anything else that the orchestration would decide fails the query, as one does that panics or
// does not come back within ten seconds. The orchestration's Logger is silent in it. Nothing is written to its history, whatever it does: the instance stays as it is. It may be called at the same time in
// several processes, and in another build than the one that runs the instance's turns.
//
// The error is for a name that is empty, longer than 256 bytes or not UTF-8, and for a nil handler. It decides nothing and waits for nothing, so it
// may be added to code whose instances are under way.
func SetQueryHandler[In, Out any](ctx *OrchestrationContext, name string, handler func(In) (Out, error)) error {
	switch {
	case name == "" || len(name) > maxQueryNameBytes || !utf8.ValidString(name):
		return fmt.Errorf("perdure: SetQueryHandler: the name of a query has 1 to %d bytes of UTF-8, is %q", maxQueryNameBytes, bounded(name))
	case handler == nil:
		return errors.New("perdure: SetQueryHandler: the handler of query " + name + " is nil")
	}
	replay.SetQueryHandler(ctx.replay, name, func(doc json.RawMessage) replay.QueryAnswer { return answerQuery(name, handler, doc) })
	return nil
}

// answerQuery calls the handler of a query.
func answerQuery[In, Out any](name string, handler func(In) (Out, error), doc json.RawMessage) replay.QueryAnswer {
	var in In
	if err := decode(payload{input, query, name}, doc, &in); err != nil {
		return replay.QueryAnswer{Failure: failureOf(err), BadInput: true}
	}
	out, err := handler(in)
	if err != nil {
		return replay.QueryAnswer{Failure: failureOf(err)}
	}
	answer, err := encodeWithin(payload{output, query, name}, out, MaxQueryAnswerBytes)
	if err != nil {
		return replay.QueryAnswer{Failure: failureOf(err), TooLarge: failureOf(err).Type == history.TypePayloadTooLarge}
	}
	return replay.QueryAnswer{Output: answer}
}
