package codec

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
)

// Chain returns a codec that encodes with the codecs in order and decodes in reverse order. Compress before you
// encrypt, because encrypted data does not compress. A codec of the chain can leave a document unchanged. The encoded
// payload records the codecs that were used. Chain panics if a codec is nil, or if the number of codecs is not 2 to 8.
func Chain(id string, codecs ...perdure.Codec) perdure.Codec {
	const most = 8 // the bits of a byte
	if len(codecs) < 2 || len(codecs) > most {
		panic(fmt.Sprintf("codec: Chain %q: %d codecs; use 2 to %d", id, len(codecs), most))
	}
	if i := slices.Index(codecs, nil); i >= 0 {
		panic(fmt.Sprintf("codec: Chain %q: codec %d of %d is nil", id, i+1, len(codecs)))
	}
	return chain{id, codecs}
}

type chain struct {
	id     string
	codecs []perdure.Codec
}

// ID implements perdure.Codec.
func (c chain) ID() string { return c.id }

// Encode implements perdure.Codec. The first byte of the result is a bit set of the codecs that encoded the document.
func (c chain) Encode(ctx context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	var done byte
	data := doc
	for i, each := range c.codecs {
		made, err := each.Encode(ctx, p, data)
		if err != nil {
			return nil, fmt.Errorf("codec: %s: %w", each.ID(), err)
		}
		if made != nil {
			data, done = made, done|1<<i
		}
	}
	if done == 0 {
		return nil, nil
	}
	return append([]byte{done}, data...), nil
}

// Decode implements perdure.Codec.
func (c chain) Decode(ctx context.Context, p perdure.PayloadInfo, data []byte) ([]byte, error) {
	if len(data) == 0 || data[0]>>len(c.codecs) != 0 {
		return nil, perdure.NonRetryable(fmt.Errorf("codec: %s: data was not encoded by this chain of %d codecs",
			c.id, len(c.codecs)))
	}
	done, data := data[0], data[1:]
	for i, undo := range slices.Backward(c.codecs) {
		if done&(1<<i) == 0 {
			continue
		}
		var err error
		if data, err = undo.Decode(ctx, p, data); err != nil {
			return nil, fmt.Errorf("codec: %s: %w", undo.ID(), err)
		}
	}
	return data, nil
}
