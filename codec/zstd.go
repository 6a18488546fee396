package codec

import (
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/zstddata"
)

const (
	// zstdID is the codec ID of Zstd.
	zstdID = "zstd"
	// zstdLeast is the minimum size of compressed payloads. Smaller payloads would grow, because of the frame, base64
	// and the reference.
	zstdLeast = 1 << 10
	// zstdMost limits the decompressed size, because no payload is larger.
	zstdMost = perdure.MaxLargePayloadBytes
)

// Zstd returns a codec that compresses payloads of at least 1 KiB if this reduces their size by a third. Its ID is
// "zstd". Decoding fails if the decompressed payload is larger than perdure.MaxLargePayloadBytes.
func Zstd() perdure.Codec {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return &compressing{w, zstddata.NewDecoder(zstdMost)}
}

// compressing implements Zstd. It is safe for concurrent use, because EncodeAll and Decode are.
type compressing struct {
	w *zstd.Encoder
	r *zstddata.Decoder
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
	doc, err := c.r.Decode(data)
	if err != nil {
		return nil, perdure.NonRetryable(fmt.Errorf("codec: %w", err))
	}
	return doc, nil
}
