package verification

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/perdure/perdure/cmd/perdure/internal/scan"
)

// sample chooses the instances of each version whose IDs have the lowest hashes. The choice is as uniform as a random
// choice, and repeated runs make the same choice.
type sample struct {
	of map[scan.Version][]candidate
}

// candidate is an instance that the sample may choose.
type candidate struct {
	id   string
	of   scan.Version
	hash uint64
}

func newSample() *sample { return &sample{of: map[scan.Version][]candidate{}} }

// offer adds an instance unless limit instances of its version have lower hashes.
func (s *sample) offer(of scan.Version, id string, limit int) {
	s.of[of] = append(s.of[of], candidate{id, of, hashOf(id)})
	if len(s.of[of]) >= 2*limit {
		s.of[of] = lowest(s.of[of], limit)
	}
}

// choose returns up to limit instances, with an equal share for each version.
func (s *sample) choose(limit int) []candidate {
	versions := make([][]candidate, 0, len(s.of))
	for _, kept := range s.of {
		versions = append(versions, lowest(kept, limit))
	}
	slices.SortFunc(versions, func(a, b []candidate) int { return cmp.Compare(a[0].id, b[0].id) })

	var chosen []candidate
	for rank := 0; len(versions) > 0; rank++ {
		versions = slices.DeleteFunc(versions, func(kept []candidate) bool { return len(kept) <= rank })
		for _, kept := range versions {
			if len(chosen) == limit {
				return chosen
			}
			chosen = append(chosen, kept[rank])
		}
	}
	return chosen
}

// lowest returns the candidates with the lowest hashes, sorted.
func lowest(kept []candidate, limit int) []candidate {
	slices.SortFunc(kept, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id))
	})
	return kept[:min(len(kept), limit)]
}

func hashOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}
