package perdure

import (
	"encoding/json"

	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/usercode"
)

// MaxQueryResultBytes is the maximum size of the result of a query, encoded as JSON: 1 MiB. The input of a query is at
// most MaxPayloadBytes.
const MaxQueryResultBytes = 1 << 20

// SetQueryHandler sets the handler of a query, which clients send with Client.Query. A later call for the same name
// replaces the handler. Set handlers at the start of the orchestration, before it waits. Until then the query is
// unknown. After a continue-as-new, the next execution must set its own handlers.
//
// A query replays the orchestration in memory up to its last turn, calls handler, and discards the replayed state.
// handler reads the variables of the orchestration, and its changes are lost. The query fails if handler schedules
// work, waits or makes another decision, panics, or runs for more than 10 seconds. The orchestration's Logger discards
// lines in a query. A query never changes the instance or its history. Queries can run concurrently in several
// processes, and in a different build than the turns.
//
// SetQueryHandler returns an error if name is empty, longer than 256 bytes or not valid UTF-8, or if handler is nil. It
// makes no decision, so you can add it to code of running instances.
func SetQueryHandler[In, Out any](ctx *OrchestrationContext, name string, handler func(In) (Out, error)) error {
	if err := names.CheckHandler("SetQueryHandler", name, handler != nil); err != nil {
		return err
	}
	ctx.replay.SetQueryHandler(name, func(doc json.RawMessage) replay.QueryOutput {
		return usercode.Query(&adapter, name, MaxQueryResultBytes, handler, doc)
	})
	return nil
}
