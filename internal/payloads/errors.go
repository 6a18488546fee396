package payloads

import (
	"errors"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

var (
	// errUnknownEncoding is the error of a payload that a later release has encoded.
	errUnknownEncoding = errors.New("this release does not support the encoding of the payload")
	// errNoStore is the error of a stored payload if the program has no payload store.
	errNoStore = errors.New("the payload is in the payload store, but this program has no payload store")
)

// IsPermanent reports whether an error of this package is permanent: the codec is unknown, panics or marks the error as
// not retryable, or the payload is missing or corrupt. Any other error may be an outage.
func IsPermanent(err error) bool {
	if _, ok := errors.AsType[*perdure.PayloadError](err); !ok {
		return false
	}
	if IsOfBuild(err) || errors.Is(err, perdure.ErrPayloadNotFound) || errors.Is(err, provider.ErrCorrupt) {
		return true
	}
	marked, ok := errors.AsType[interface {
		error
		NonRetryable() bool
	}](err)
	return ok && marked.NonRetryable()
}

// IsOfBuild reports whether another build may be able to process the payload: this program lacks the codec, the payload
// store or the encoding, or its codec panicked.
func IsOfBuild(err error) bool {
	return errors.Is(err, perdure.ErrUnknownCodec) || errors.Is(err, errNoStore) ||
		errors.Is(err, errUnknownEncoding) || errors.Is(err, errPanicked)
}
