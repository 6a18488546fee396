package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// stream is a stream of random numbers that an execution ID determines. Draws from streams with different names are
// independent.
type stream struct {
	name    string
	source  *rand.ChaCha8 // nil until the first draw
	numbers *rand.Rand
}

// start returns the numbers of the stream and seeds it in the first call.
func (s *stream) start(name, executionID string) *rand.Rand {
	if s.source == nil {
		s.name, s.source = name, rand.NewChaCha8(Seed(name, executionID))
		s.numbers = rand.New(s.source)
	}
	return s.numbers
}

// reseed continues the stream with the seed of another execution.
func (s *stream) reseed(executionID string) {
	if s.source != nil {
		s.source.Seed(Seed(s.name, executionID))
	}
}

// Seed returns the seed of a named stream of an execution.
func Seed(name, executionID string) [32]byte {
	return sha256.Sum256([]byte(name + "\x00" + executionID))
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID(r *rand.Rand) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
