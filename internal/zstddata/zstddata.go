// Package zstddata decompresses documents of zstd. The memory that it needs depends on the data, and not only on a size
// that the data declares.
package zstddata

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Decoder decompresses documents. It is safe for concurrent use.
type Decoder struct {
	r     *zstd.Decoder
	limit uint64
}

// NewDecoder returns a Decoder of documents with at most limit bytes.
func NewDecoder(limit uint64) *Decoder {
	r, err := zstd.NewReader(
		nil, zstd.WithDecoderMaxMemory(limit), zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return &Decoder{r, limit}
}

const (
	// undeclared is the maximum size of a document without a declared size. Encoders that compress a whole document
	// declare any larger size.
	undeclared = 255
	// A block has a header of leastBlock bytes, and at most maxBlock bytes after decompression.
	leastBlock = 3
	maxBlock   = 128 << 10
	// reserve is the space behind the document for which the decoder of blocks is faster.
	reserve = 16
)

// ErrTooLarge is the error for data that exceeds the limit, or declares a size that it cannot have.
var ErrTooLarge = errors.New("size exceeds the limit, or does not fit the data")

// Decode decompresses a document. Empty data is an empty document.
func (d *Decoder) Decode(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var frame zstd.Header
	if err := frame.Decode(data); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	size := uint64(undeclared)
	if frame.HasFCS {
		size = frame.FrameContentSize
	}
	if size > d.limit || size > maxBlock*uint64(len(data)/leastBlock+1) {
		return nil, fmt.Errorf("zstd: %d bytes: %w", size, ErrTooLarge)
	}
	doc, err := d.r.DecodeAll(data, make([]byte, 0, size+reserve))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return doc, nil
}
