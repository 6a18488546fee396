package client

import (
	"iter"

	"github.com/perdure/perdure/internal/inputcheck"
)

// MaxPageSize is the maximum number of items of a page.
const MaxPageSize = inputcheck.MaxPageSize

// defaultPage is the size of a page if Paging.Limit is 0.
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

// Collect returns all items of an iterator. If the iterator returns an error, Collect returns the error and the items
// before it.
func Collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, item)
	}
	return all, nil
}
