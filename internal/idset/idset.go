// Package idset provides sets of event IDs.
package idset

import (
	"cmp"
	"slices"

	"github.com/perdure/perdure/history"
)

// Set is a set of event IDs, stored as sorted ranges with gaps between them.
type Set []history.Range

// Has reports whether an ID is in the set.
func (s Set) Has(id int64) bool {
	i := s.search(id)
	return i < len(s) && s[i].First <= id
}

// Add returns the set with a range of IDs added. IDs are positive.
func (s Set) Add(r history.Range) Set {
	// from is the first range that r joins, or the first one after it.
	from := s.search(r.First - 1)
	to := from
	for to < len(s) && s[to].First-1 <= r.Last {
		r.First, r.Last = min(r.First, s[to].First), max(r.Last, s[to].Last)
		to++
	}

	return slices.Replace(s, from, to, r)
}

// search returns the first range that ends with an ID or after it.
func (s Set) search(id int64) int {
	i, _ := slices.BinarySearchFunc(s, id, func(r history.Range, id int64) int { return cmp.Compare(r.Last, id) })
	return i
}
