package simaws

import (
	"cmp"
	"slices"
	"sort"
)

// chunkSize limits the number of rows that an insertion moves, so that insertions are fast in a partition of a million
// rows.
const chunkSize = 256

// row is an item in the order of a partition of the table or an index. The map of a stored item does not change.
type row struct {
	sort string // the sort key, as a text in key order
	tie  string // the primary key, for index rows; makes the order total
	item item
	size int
}

func (r *row) compare(sort, tie string) int {
	if c := cmp.Compare(r.sort, sort); c != 0 {
		return c
	}

	return cmp.Compare(r.tie, tie)
}

// rows is a partition. It holds its rows in order, in chunks.
type rows struct {
	chunks [][]*row
}

// position is a position in rows. The position after the end has the index of a chunk that does not exist.
type position struct {
	chunk, at int
}

// search returns the first row for which reached is true. reached must be true for all rows after it.
func (l *rows) search(reached func(*row) bool) position {
	chunk := sort.Search(len(l.chunks), func(i int) bool {
		last := l.chunks[i][len(l.chunks[i])-1]

		return reached(last)
	})
	if chunk == len(l.chunks) {
		return position{chunk: chunk}
	}

	rows := l.chunks[chunk]

	return position{chunk, sort.Search(len(rows), func(i int) bool { return reached(rows[i]) })}
}

// at returns the row at a position, or nil outside the rows.
func (l *rows) at(p position) *row {
	if p.chunk < 0 || p.chunk >= len(l.chunks) {
		return nil
	}

	return l.chunks[p.chunk][p.at]
}

func (l *rows) next(p position) position {
	if p.at+1 < len(l.chunks[p.chunk]) {
		return position{p.chunk, p.at + 1}
	}

	return position{chunk: p.chunk + 1}
}

// previous returns the position before p, which may be the position after the end.
func (l *rows) previous(p position) position {
	if p.at > 0 {
		return position{p.chunk, p.at - 1}
	}

	if p.chunk == 0 {
		return position{chunk: -1}
	}

	return position{p.chunk - 1, len(l.chunks[p.chunk-1]) - 1}
}

// find returns the row of a key, or nil.
func (l *rows) find(sort, tie string) *row {
	r := l.at(l.seek(sort, tie))
	if r == nil || r.compare(sort, tie) != 0 {
		return nil
	}

	return r
}

// seek returns the position of a key, or of the first greater key.
func (l *rows) seek(sort, tie string) position {
	return l.search(func(r *row) bool { return r.compare(sort, tie) >= 0 })
}

// insert adds a row with a new key.
func (l *rows) insert(r *row) {
	p := l.seek(r.sort, r.tie)
	if p.chunk == len(l.chunks) {
		l.add(r)

		return
	}

	chunk := slices.Insert(l.chunks[p.chunk], p.at, r)
	l.chunks[p.chunk] = chunk

	if len(chunk) > chunkSize {
		half := len(chunk) / 2
		l.chunks[p.chunk] = slices.Clip(chunk[:half])
		l.chunks = slices.Insert(l.chunks, p.chunk+1, slices.Clone(chunk[half:]))
	}
}

// add appends a row. It does not split full chunks.
func (l *rows) add(r *row) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) >= chunkSize {
		l.chunks = append(l.chunks, []*row{r})

		return
	}

	l.chunks[last] = append(l.chunks[last], r)
}

// remove removes the row of a key, if the row exists.
func (l *rows) remove(sort, tie string) {
	p := l.seek(sort, tie)

	r := l.at(p)
	if r == nil || r.compare(sort, tie) != 0 {
		return
	}

	l.chunks[p.chunk] = slices.Delete(l.chunks[p.chunk], p.at, p.at+1)
	if len(l.chunks[p.chunk]) == 0 {
		l.chunks = slices.Delete(l.chunks, p.chunk, p.chunk+1)
	}
}
