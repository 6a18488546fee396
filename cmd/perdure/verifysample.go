package main

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// versionOf is an orchestration in one version.
type versionOf struct{ orchestration, version string }

// sample keeps instances of each version: those whose ids have the lowest hashes, which is as good as a draw, and the same each time.
type sample struct {
	of map[versionOf][]drawn
}

// drawn is an instance that may be chosen.
type drawn struct {
	id   string
	of   versionOf
	hash uint64
}

func newSample() *sample { return &sample{of: map[versionOf][]drawn{}} }

// offer keeps an instance, unless there are most of its version with lower hashes.
func (s *sample) offer(of versionOf, id string, most int) {
	s.of[of] = append(s.of[of], drawn{id, of, hashOf(id)})
	if len(s.of[of]) >= 2*most {
		s.of[of] = lowest(s.of[of], most)
	}
}

// choose returns most instances: of each version as many as there are, up to an equal share.
func (s *sample) choose(most int) []drawn {
	versions := make([][]drawn, 0, len(s.of))
	for _, kept := range s.of {
		versions = append(versions, lowest(kept, most))
	}
	slices.SortFunc(versions, func(a, b []drawn) int { return cmp.Compare(a[0].id, b[0].id) })

	var chosen []drawn
	for rank := 0; len(versions) > 0; rank++ {
		versions = slices.DeleteFunc(versions, func(kept []drawn) bool { return len(kept) <= rank })
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
func lowest(kept []drawn, most int) []drawn {
	slices.SortFunc(kept, func(a, b drawn) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id)) })
	return kept[:min(len(kept), most)]
}

func hashOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}
