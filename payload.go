package perdure

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/usercode"
)

// MaxPayloadBytes is the maximum size of a payload, encoded as JSON: 200 KiB. If the hub has a payload store, the limit
// is MaxLargePayloadBytes wherever this package names MaxPayloadBytes. The exceptions are heartbeat details, and inputs
// and results of queries.
const MaxPayloadBytes = 200 << 10

// MaxLargePayloadBytes is the maximum size of a payload, encoded as JSON, on a hub with a payload store: 32 MiB. It
// does not apply to custom statuses, heartbeat details, error details and queries.
const MaxLargePayloadBytes = 32 << 20

// Codec encodes payloads before they are stored or sent, and decodes them, for example to compress or encrypt them. The
// codec processes all JSON values of your code. See PayloadKind for the list. The codec does not process the types and
// messages of errors, names, IDs, tags, cancel messages, or the inputs and results of queries.
//
// Set a codec with lambdahandler.WithCodec, client.WithCodec, perduretest.WithCodec, or the options of package
// dispatch. Every program of a hub that reads payloads needs the codec.
//
// The methods are called concurrently, and must decode everything that was ever encoded with their ID. To change the
// encoding, use a new ID and pass the old codec to WithCodec as well, for decoding. A method that calls a service must
// cache the responses, because a turn waits for it and a replay decodes every payload that the code awaits.
//
// If a method returns an error, the turn or the attempt of the activity is retried. If the error is marked with
// NonRetryable, the instance is blocked or the activity fails. See docs/guides/large-payloads-and-codecs.md.
type Codec interface {
	// ID returns the ID that is stored with each encoded payload: 1 to 64 letters, digits, dots, dashes and
	// underscores.
	ID() string
	// Encode returns the encoded form of a JSON document, or nil to store the document unchanged. The result may differ
	// between calls. Encode must not modify doc.
	Encode(ctx context.Context, p PayloadInfo, doc []byte) ([]byte, error)
	// Decode returns the document that was passed to Encode. The PayloadInfo can differ from the one of Encode. Decode
	// must not modify data.
	Decode(ctx context.Context, p PayloadInfo, data []byte) ([]byte, error)
}

// PayloadInfo describes a payload to a Codec. The info at decoding can differ from the info at encoding. For example, a
// parent encodes the input of a child, and the child decodes that input.
type PayloadInfo struct {
	// InstanceID and ExecutionID identify the instance that encodes or decodes. They are empty if the instance is not
	// known, for example before a start.
	InstanceID, ExecutionID string
	Kind                    PayloadKind
	// Name is the name of the activity, orchestration, external event or update. It is empty if the name is not known.
	Name string
}

// PayloadKind is the role of a payload.
type PayloadKind = history.PayloadKind

// The kinds of payloads.
const (
	PayloadActivityInput       = history.PayloadActivityInput
	PayloadActivityResult      = history.PayloadActivityResult
	PayloadHeartbeatDetails    = history.PayloadHeartbeatDetails
	PayloadOrchestrationInput  = history.PayloadOrchestrationInput
	PayloadOrchestrationOutput = history.PayloadOrchestrationOutput
	PayloadEventData           = history.PayloadEventData
	PayloadSideEffect          = history.PayloadSideEffect
	PayloadUpdateInput         = history.PayloadUpdateInput
	PayloadUpdateResult        = history.PayloadUpdateResult
	PayloadCustomStatus        = history.PayloadCustomStatus
	PayloadErrorDetails        = history.PayloadErrorDetails
)

// ErrUnknownCodec is wrapped by a PayloadError if this program does not have the codec of the payload. Add it with
// WithCodec.
var ErrUnknownCodec = errors.New("this program does not have the codec; add it with WithCodec")

// ErrPayloadNotFound is wrapped by a PayloadError if the payload store does not have the payload. It was deleted from
// the bucket, or its execution was purged.
var ErrPayloadNotFound = errors.New("not found in the payload store; it was deleted, or its execution was purged")

// PayloadError means that a payload could not be encoded, stored, fetched or decoded.
type PayloadError struct {
	// Payload describes the payload.
	Payload PayloadInfo
	// Codec is the ID of the payload's codec. It is empty if the payload has no codec.
	Codec string
	// Key is the key of the payload in the payload store. It is empty if the payload is stored in the history.
	Key string
	// Err is the cause.
	Err error
}

// Error returns a message with the payload and the cause.
func (e *PayloadError) Error() string {
	p := e.Payload
	stored := payloadjson.Stored{
		Kind: p.Kind, Name: p.Name, InstanceID: p.InstanceID, ExecutionID: p.ExecutionID, Codec: e.Codec, Key: e.Key,
	}
	return stored.String() + ": " + failures.Truncate(e.Err.Error())
}

// Unwrap returns the cause.
func (e *PayloadError) Unwrap() error { return e.Err }

// ErrorType returns the type name that failures store for the error.
func (e *PayloadError) ErrorType() string { return history.TypePayloadUnreadable }

// adapter calls the functions of user code.
var adapter = usercode.Adapter{
	MaxBytes: MaxPayloadBytes, MaxLargeBytes: MaxLargePayloadBytes, Failure: failureOf, Pending: ErrPending,
	TooLarge: func(of payloadjson.Name, bytes, limit int) error {
		return &PayloadTooLargeError{Name: of.String(), Bytes: bytes, Limit: limit}
	},
}

// encode encodes a value within the limit of the turn.
func (ctx *OrchestrationContext) encode(of payloadjson.Name, v any) (json.RawMessage, error) {
	return adapter.EncodeFor(ctx.replay, of, v)
}
