package verification

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/perdure/perdure/cmd/perdure/internal/scan"
)

// sample keeps instances of each version: those whose ids have the lowest hashes, which is as good as a draw, and the same each time.
type sample struct {
	of map[scan.Version][]candidate
}

// drawn is an instance that may be chosen.
type candidate struct {
	id   string
	of   scan.Version
	hash uint64
}

func newSample() *sample { return &sample{of: map[scan.Version][]candidate{}} }

// offer keeps an instance, unless there are most of its version with lower hashes.
func (s *sample) offer(of scan.Version, id string, most int) {
	s.of[of] = append(s.of[of], candidate{id, of, hashOf(id)})
	if len(s.of[of]) >= 2*most {
		s.of[of] = lowest(s.of[of], most)
	}
}

// choose returns most instances: of each version as many as there are, up to an equal share.
func (s *sample) choose(most int) []candidate {
	versions := make([][]candidate, 0, len(s.of))
	for _, kept := range s.of {
		versions = append(versions, lowest(kept, most))
	}
	slices.SortFunc(versions, func(a, b []candidate) int { return cmp.Compare(a[0].id, b[0].id) })

	var chosen []candidate
	for rank := 0; len(versions) > 0; rank++ {
		versions = slices.DeleteFunc(versions, func(kept []candidate) bool { return len(kept) <= rank })
		for _, kept := range versions {
			if len(chosen) == most {
				return chosen
			}
			chosen = append(chosen, kept[rank])
		}
	}
	return chosen
}

// lowest returns those of the lowest hashes, sorted.
func lowest(kept []candidate, most int) []candidate {
	slices.SortFunc(kept, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id)) })
	return kept[:min(len(kept), most)]
}

func hashOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}
