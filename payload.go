package perdure

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
)

// Codec turns payloads into what is stored and sent, and back: it compresses them, or encrypts them. Everything that a program gives to perdure as JSON
// passes through it: inputs, results, outputs, data of external events, inputs and results of updates, values of side effects, custom statuses, details of heartbeats and of errors. The types and texts of errors do
// not, nor do names, ids, tags and messages, nor the input and the answer of a query, which are stored nowhere.
//
// A codec is set by WithCodec, of the packages lambdahandler, client and perduretest, and in the options of package dispatch. All functions of a hub
// that look into payloads need it, and those that do not can do without.
//
// Its methods are called side by side, and with the data of any earlier time: what was written under an id must stay readable under it. Give a
// codec that writes otherwise another id, and WithCodec the one before as well, to read with. They may call services, such as one that keeps keys, and
// must then cache what they get: the turn waits, and a replay decodes everything that its code awaits. An error has the turn, or the attempt of an
// activity, tried again; one that is marked with NonRetryable blocks the instance instead, or fails the activity.
type Codec interface {
	// ID names what Encode makes, and stands beside it: 1 to 64 letters, digits, dots, dashes and underlines.
	ID() string
	// Encode returns what is to be stored of a JSON document, or nil to leave it as it is. It need not be the same each time. Neither method may change
	// what it is given, which others read meanwhile.
	Encode(ctx context.Context, p PayloadInfo, doc []byte) ([]byte, error)
	// Decode returns the document that Encode was given, with whatever PayloadInfo.
	Decode(ctx context.Context, p PayloadInfo, data []byte) ([]byte, error)
}

// PayloadInfo says what a payload is, and for whom it is encoded or decoded. The two need not be the same: what a parent encodes as a child's input, the
// child decodes.
type PayloadInfo struct {
	// InstanceID and ExecutionID are of the instance at work; empty where that is not known, as before a start.
	InstanceID, ExecutionID string
	Kind                    PayloadKind
	// Name is that of the activity, orchestration, external event or update; empty where it is not known.
	Name string
}

// PayloadKind says what a payload is to the program that it is of.
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

// ErrCodecUnknown is in a PayloadError whose Codec this program does not have: WithCodec gives it.
var ErrCodecUnknown = errors.New("this program does not have the codec")

// ErrPayloadMissing is in a PayloadError whose Key the store of large payloads does not have: it was deleted from outside, or its execution was purged or
// erased meanwhile.
var ErrPayloadMissing = errors.New("the store of large payloads does not have it, or no longer")

// PayloadError says that a payload could not be encoded, stored, fetched or decoded, and why.
type PayloadError struct {
	// Payload says what it is.
	Payload PayloadInfo
	// Codec is the id of the codec that it is encoded with, or was to be; empty: with none.
	Codec string
	// Key is where it is stored; empty: with its event.
	Key string
	Err error
}

// Error implements error.
func (e *PayloadError) Error() string {
	what := string(e.Payload.Kind)
	if e.Payload.Name != "" {
		what += fmt.Sprintf(" of %q", e.Payload.Name)
	}
	if e.Payload.InstanceID != "" {
		what = fmt.Sprintf("instance %q: %s", e.Payload.InstanceID, what)
	}
	if e.Payload.ExecutionID != "" && e.Key != "" {
		what += ", execution " + e.Payload.ExecutionID
	}
	if e.Codec != "" {
		what += fmt.Sprintf(", codec %q", e.Codec)
	}
	if e.Key != "" {
		what += ", at " + e.Key
	}
	return what + ": " + bounded(e.Err.Error()) // a codec may say anything
}

// Unwrap returns why.
func (e *PayloadError) Unwrap() error { return e.Err }

// ErrorType implements the naming of errors.
func (e *PayloadError) ErrorType() string { return history.TypePayloadUnreadable }
