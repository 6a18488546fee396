package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// stream is a stream of numbers that an execution's id determines. Streams have names, so that a draw from one does not move another.
type stream struct {
	name    string
	source  *rand.ChaCha8 // nil until the first draw
	numbers *rand.Rand
}

// of returns the numbers of a stream, which begins with the first call.
func (s *stream) of(name, executionID string) *rand.Rand {
	if s.source == nil {
		s.name, s.source = name, rand.NewChaCha8(seedOf(name, executionID))
		s.numbers = rand.New(s.source)
	}
	return s.numbers
}

// become has the stream go on as that of another execution, also for code that has kept the numbers.
func (s *stream) become(executionID string) {
	if s.source != nil {
		s.source.Seed(seedOf(s.name, executionID))
	}
}

func seedOf(name, executionID string) [32]byte {
	return sha256.Sum256([]byte(name + "\x00" + executionID))
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
