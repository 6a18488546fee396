package payloads

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
)

// errPanicked is the error of a codec that panicked. The error is permanent for this build, and does not affect other
// payloads.
var errPanicked = errors.New("codec panicked")

func callEncode(ctx context.Context, c perdure.Codec, info perdure.PayloadInfo, data []byte) (out []byte, err error) {
	defer recoverPanic(&err, "Encode")
	return c.Encode(ctx, info, data)
}

func callDecode(ctx context.Context, c perdure.Codec, info perdure.PayloadInfo, data []byte) (out []byte, err error) {
	defer recoverPanic(&err, "Decode")
	return c.Decode(ctx, info, data)
}

func recoverPanic(err *error, method string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w in %s: %v", errPanicked, method, r)
	}
}
