package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/internal/zstddata"
)

// IsStub reports whether the item replaces a deleted segment.
func IsStub(it Item) bool {
	_, stub := it[AttrStub]
	return stub
}

// IsCancelMark reports whether a sort key belongs to c or to a part of it.
func IsCancelMark(sk string) bool {
	return sk == SKCancelMark || strings.HasPrefix(sk, SKCancelMark+"#")
}

// IsCancelDecision reports whether a sort key belongs to the decisions of a turn or a block.
func IsCancelDecision(sk string) bool {
	return strings.HasPrefix(sk, SKCancelDecisions) || strings.HasPrefix(sk, SKCancelBlocks)
}

const (
	// JSONLimit is the size up to which a segment stays readable in the console. Above it, zstd saves write units.
	JSONLimit = 4 << 10
	// PartLimit leaves space for key and header in an item of 400 KB (a DynamoDB quota).
	PartLimit = 350 << 10
	// SegmentLimit is the maximum compressed size of a segment. It leaves space for the other items in a transaction of
	// 4 MB (a DynamoDB quota).
	SegmentLimit = 3 << 20
	// DecodeLimit is the maximum decompressed size of a segment.
	DecodeLimit = 256 << 20
)

// The All methods of the encoder and the decoder are safe for concurrent use. Both are expensive to create.
var (
	encoder = newEncoder()
	decoder = zstddata.NewDecoder(DecodeLimit)
)

// newEncoder returns an encoder that has created its channel. If the channel were created on first use in a
// testing/synctest bubble, its use in the next bubble would panic.
func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // cannot happen, because the options are constants
	}
	e.EncodeAll(nil, nil)
	return e
}

// Compress compresses a document.
func Compress(doc []byte) []byte { return encoder.EncodeAll(doc, nil) }

// Decompress returns a document of up to DecodeLimit bytes.
func Decompress(packed []byte) ([]byte, error) {
	return decoder.Decode(packed)
}

// SplitDocument adds a compressed document to its first item. It returns all items of the document. The sort keys of
// further parts consist of the key of the first part and a number.
func SplitDocument(first Item, packed []byte) (items []Item) {
	for part := range slices.Chunk(packed, PartLimit) {
		it := first
		if n := len(items); n > 0 {
			it = Key(GetString(first, AttrPK), fmt.Sprintf("%s#%03d", GetString(first, AttrSK), n))
		}
		it[AttrZstd] = Bin(part)
		items = append(items, it)
	}
	first[AttrParts] = Num(int64(len(items)))
	return items
}

// TornError means that the items that were read are not a complete history. Another read may find it complete (R8).
type TornError struct{ message string }

// NewTornError returns a TornError with a formatted message.
func NewTornError(format string, args ...any) *TornError {
	return &TornError{message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *TornError) Error() string { return e.message }

// MaxReadTries is the number of tries of a torn read. A strongly consistent query can return half of a transaction for
// a moment. After these tries, the items count as missing.
const MaxReadTries = 3

// ErrDeleted reports that the instance was deleted (R17).
var ErrDeleted = errors.New("segment is a stub")
