package perdure

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloadjson"
)

// MaxPayloadBytes is the maximum size of a payload, encoded as JSON: 200 KiB. If the hub has a payload store, the limit
// is MaxLargePayloadBytes wherever this package names MaxPayloadBytes, except for heartbeat details and for the inputs
// and results of queries.
const MaxPayloadBytes = 200 << 10

// MaxLargePayloadBytes is the maximum size of a payload, encoded as JSON, on a hub with a payload store: 32 MiB. It
// does not apply to custom statuses, heartbeat details, error details and queries.
const MaxLargePayloadBytes = 32 << 20

// payload names a value that is encoded or decoded, for errors.
type payload struct {
	what part
	of   owner
	name string
}

type (
	part  string
	owner string
)

const (
	input  part = "input"
	result part = "result"
	output part = "output"
	effect part = "value"
	data   part = "data"

	heartbeat part = "heartbeat details"

	customStatus part = "custom status"

	activity      owner = "activity"
	orchestration owner = "orchestration"
	query         owner = "query"
	update        owner = "update"
	sideEffect    owner = "side effect"
	externalEvent owner = "external event"
)

func (p payload) String() string {
	if p.name == "" {
		return fmt.Sprintf("%s of a %s", p.what, p.of)
	}
	return fmt.Sprintf("%s of %s %q", p.what, p.of, p.name)
}

// encode writes a value as JSON.
func encode(p payload, v any) (json.RawMessage, error) {
	return encodeWithin(p, v, MaxPayloadBytes)
}

// encode writes what the orchestration decides, within the limit of the turn: that of a replay is the turn's of then.
func (ctx *OrchestrationContext) encode(p payload, v any) (json.RawMessage, error) {
	return encodeWithin(p, v, payloadLimit(ctx.replay.TakesLargePayloads()))
}

// payloadLimit is the limit of a payload where there is a store of large ones, or none.
func payloadLimit(large bool) int {
	if large {
		return MaxLargePayloadBytes
	}
	return MaxPayloadBytes
}

func encodeWithin(p payload, v any, limit int) (json.RawMessage, error) {
	doc, err := payloadjson.Marshal(v)
	if err != nil {
		return nil, &codecError{failure: history.TypeEncode, message: fmt.Sprintf("encode %s", p), cause: err}
	}
	if len(doc) > limit {
		return nil, &PayloadTooLargeError{Name: p.String(), Bytes: len(doc), Limit: limit}
	}
	return doc, nil
}

// decode reads a value that encode wrote. No document at all leaves the zero value.
func decode(p payload, doc json.RawMessage, v any) error {
	if len(doc) == 0 {
		return nil
	}
	if err := json.Unmarshal(doc, v); err != nil {
		return &codecError{failure: history.TypeDecode, message: fmt.Sprintf("decode %s", p), cause: err}
	}
	return nil
}

// codecError is a value that does not fit: trying again does not help.
type codecError struct {
	failure, message string
	cause            error
}

// Error implements error. The cause names the field.
func (e *codecError) Error() string { return "perdure: " + e.message + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *codecError) Unwrap() error { return e.cause }

// ErrorType implements the naming of errors.
func (e *codecError) ErrorType() string { return e.failure }

// NonRetryable implements the marker.
func (e *codecError) NonRetryable() bool { return true }
