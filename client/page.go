package client

import (
	"fmt"
	"iter"

	"github.com/perdure/perdure/provider"
)

// MaxPageSize is the maximum number of items of a page.
const MaxPageSize = 1000

// defaultPage is the size of a page when none is asked for.
const defaultPage = 100

// Paging selects a page of a list. The zero value selects the first page, with up to 100 items.
type Paging struct {
	// Limit is the maximum number of items, 1 to MaxPageSize. 0 means 100. Any other value is a *provider.FieldError.
	Limit int
	// Cursor is the NextCursor of the previous page of the same list. It is empty for the first page. An invalid cursor
	// is a *provider.FieldError.
	Cursor string
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	// NextCursor selects the next page. It is empty on the last page only. A page with few or no items may have a next
	// page.
	NextCursor string
}

// eachOfPages yields the items of a list, page by page. It ends with the first error.
func eachOfPages[T any](read func(Paging) (Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for p := (Paging{}); ; {
			page, err := read(p)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if p.Cursor = page.NextCursor; p.Cursor == "" {
				return
			}
		}
	}
}

// Collect returns all items of an iterator. If the iterator returns an error, Collect returns the items before it too.
func Collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, item)
	}
	return all, nil
}

const (
	fieldCursor = "cursor"
	// maxCursorBytes is longer than any cursor: the longest holds an instance id, each byte of which may be escaped.
	maxCursorBytes = 16 << 10
)

// checkCursor refuses texts that cannot be cursors, before anything is read for them.
func checkCursor(cursor string) error { return checkText(fieldCursor, cursor, 0, maxCursorBytes) }

// checkLimit accepts 0, which is no limit.
func checkLimit(limit int) error {
	if limit < 0 || limit > MaxPageSize {
		return &provider.FieldError{Field: "limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", MaxPageSize, limit)}
	}
	return nil
}
