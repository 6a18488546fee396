package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// newRand returns a stream of numbers that an execution's id determines. Streams have names, so that a draw from one does not move another.
func newRand(stream, executionID string) *rand.Rand {
	seed := sha256.Sum256([]byte(stream + "\x00" + executionID))
	return rand.New(rand.NewChaCha8(seed))
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
