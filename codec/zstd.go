package codec

import (
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure"
)

const (
	// zstdID stands beside what Zstd makes.
	zstdID = "zstd"
	// zstdLeast is the size from which on compressing is tried: below it a payload grows by its frame, base64 and reference.
	zstdLeast = 1 << 10
	// zstdMost bounds what a payload may become when it is opened: no payload is larger.
	zstdMost = perdure.MaxLargePayloadBytes
)

// Zstd returns a codec that compresses payloads of at least 1 KiB if that saves a third of their size. Its ID is
// "zstd". Decoding fails if the decompressed payload is larger than perdure.MaxLargePayloadBytes.
func Zstd() perdure.Codec {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(zstdMost))
	if err != nil {
		panic(err) // the options are constants
	}
	return &compressing{w, r}
}

// compressing is safe for concurrent use, as EncodeAll and DecodeAll are.
type compressing struct {
	w *zstd.Encoder
	r *zstd.Decoder
}

// ID implements perdure.Codec.
func (*compressing) ID() string { return zstdID }

// Encode implements perdure.Codec.
func (c *compressing) Encode(_ context.Context, _ perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if len(doc) < zstdLeast {
		return nil, nil
	}
	data := c.w.EncodeAll(doc, make([]byte, 0, len(doc)/2))
	if len(data) > len(doc)/3*2 {
		return nil, nil
	}
	return data, nil
}

// Decode implements perdure.Codec.
func (c *compressing) Decode(_ context.Context, _ perdure.PayloadInfo, data []byte) ([]byte, error) {
	doc, err := c.r.DecodeAll(data, nil)
	if err != nil {
		return nil, perdure.NonRetryable(fmt.Errorf("codec: zstd: %w", err))
	}
	return doc, nil
}
