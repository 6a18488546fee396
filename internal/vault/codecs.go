package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
)

// errPanicked is about a codec whose code is wrong: this program's.
var errPanicked = errors.New("codec panicked")

// encoded is what a codec makes of data. A codec that panics is in error, and takes nobody else's work with it: the error stays, until its code is another.
func encoded(ctx context.Context, c perdure.Codec, about perdure.PayloadInfo, data []byte) (out []byte, err error) {
	defer trap(&err, "Encode")
	return c.Encode(ctx, about, data)
}

// decoded is what a codec has made data of.
func decoded(ctx context.Context, c perdure.Codec, about perdure.PayloadInfo, data []byte) (out []byte, err error) {
	defer trap(&err, "Decode")
	return c.Decode(ctx, about, data)
}

func trap(err *error, method string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w in %s: %v", errPanicked, method, r)
	}
}
