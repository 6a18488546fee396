package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// stream is a stream of numbers that an execution's id determines. Streams have names, so that a draw from one does not move another.
type stream struct {
	*rand.Rand

	source *rand.ChaCha8
}

func newStream(name, executionID string) *stream {
	source := rand.NewChaCha8(sha256.Sum256([]byte(name + "\x00" + executionID)))
	return &stream{rand.New(source), source}
}

// numbersOf are what the code draws random numbers from.
func numbersOf(x *execution) *stream {
	if x.random == nil {
		x.random = newStream("rand", x.options.ExecutionID)
	}
	return x.random
}

// idsOf are what the code's ids are drawn from.
func idsOf(x *execution) *stream {
	if x.uuids == nil {
		x.uuids = newStream("uuid", x.options.ExecutionID)
	}
	return x.uuids
}

// markDraws returns what takes back the draws that are made meanwhile, also by code that holds the source: no replay makes those of a validator again.
func markDraws(x *execution) (takeBack func()) {
	numbers, ids := *numbersOf(x).source, *idsOf(x).source
	return func() { *x.random.source, *x.uuids.source = numbers, ids }
}

// newUUID draws a random UUID (RFC 9562, version 4).
func newUUID(r *rand.Rand) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
