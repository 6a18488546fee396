package cron

import "math/bits"

const wordBits = 64

// bitset is a set of integers from 0 to 255.
type bitset [4]uint64

func (s *bitset) add(v int) { s[v/wordBits] |= 1 << (v % wordBits) }

func (s *bitset) has(v int) bool { return s[v/wordBits]&(1<<(v%wordBits)) != 0 }

// next returns the smallest member that is at least v.
func (s *bitset) next(v int) (member int, ok bool) {
	for word := v / wordBits; word < len(s); word++ {
		rest := s[word]
		if word == v/wordBits {
			rest &= ^uint64(0) << (v % wordBits)
		}
		if rest != 0 {
			return word*wordBits + bits.TrailingZeros64(rest), true
		}
	}
	return 0, false
}
