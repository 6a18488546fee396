package client

import (
	"fmt"
	"iter"

	"github.com/perdure/perdure/provider"
)

// MaxPage is the largest page of a list.
const MaxPage = 1000

// defaultPage is the size of a page when none is asked for.
const defaultPage = 100

// Paging says which page of a list is to be read. The zero value is the first one, of 100 items.
type Paging struct {
	// Limit is how many items the page may have, at most MaxPage; 0 is 100. Another number is a *provider.FieldError.
	Limit int
	// Cursor is the NextCursor of the page before, of the same list; empty is the first page. One of another list, or of nowhere, is a
	// *provider.FieldError.
	Cursor string
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	// NextCursor is where the next page begins; empty: the list is over. Nothing else says so: a page may have fewer items than its limit,
	// or none, and not be the last.
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

// Collect reads a list to its end. With an error it returns what came before it.
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
	if limit < 0 || limit > MaxPage {
		return &provider.FieldError{Field: "limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", MaxPage, limit)}
	}
	return nil
}
