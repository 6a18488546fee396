// Package idset provides sets of event IDs.
package idset

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// Set is a set of event IDs, stored as sorted ranges with gaps between them.
type Set []history.Range

// Has reports whether an ID is in the set.
func (s Set) Has(id int64) bool {
	i, _ := slices.BinarySearchFunc(s, id, func(r history.Range, id int64) int { return int(r.Last - id) })
	return i < len(s) && s[i].First <= id
}

// Add returns the set with a range of IDs added.
func (s Set) Add(r history.Range) Set {
	// from is the first range that r joins, or the first one after it.
	from, _ := slices.BinarySearchFunc(s, r.First-1, func(o history.Range, id int64) int { return int(o.Last - id) })
	to := from
	for to < len(s) && s[to].First <= r.Last+1 {
		r.First, r.Last = min(r.First, s[to].First), max(r.Last, s[to].Last)
		to++
	}

	return slices.Replace(s, from, to, r)
}
