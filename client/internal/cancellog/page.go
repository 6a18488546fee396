package cancellog

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Page is a page of the cancellations of an execution.
type Page struct {
	ExecutionID string
	StartedAt   time.Time
	Items       []Cancellation
	NextCursor  string
}

// CheckCursor checks a cursor of cancellations: the index of the first one of its page.
func CheckCursor(cursor string) error {
	_, err := parseIndex(cursor)
	return err
}

func parseIndex(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	if err := inputcheck.Cursor(cursor); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 1 || cursor != strconv.Itoa(n) {
		return 0, &provider.FieldError{Field: inputcheck.FieldCursor, Problem: "does not belong to this list"}
	}
	return n, nil
}

// ReadPage reads a page of the cancellations of an execution.
func ReadPage(
	ctx context.Context, hub Backend, of history.ExecutionRef, limit int, cursor string,
) (page Page, err error) {
	page.ExecutionID = of.ExecutionID
	from, err := parseIndex(cursor)
	if err != nil {
		return page, err
	}
	log, err := Read(ctx, hub, of)
	if err != nil {
		return page, err
	}
	from = min(from, len(log.Items))
	to := min(from+limit, len(log.Items))
	if to < len(log.Items) {
		page.NextCursor = strconv.Itoa(to) // later cancellations are appended, so that indexes stay valid
	}
	items := log.Items[from:to]
	if err := AddChildOutcomes(ctx, hub, of.ExecutionID, items, inputcheck.MaxPageSize); err != nil {
		return page, err
	}
	page.StartedAt, page.Items = log.StartedAt, items
	return page, nil
}

// All yields the cancellations of an execution. It reads all of them before it yields the first one.
func All(ctx context.Context, hub Backend, of history.ExecutionRef) iter.Seq2[Cancellation, error] {
	return func(yield func(Cancellation, error) bool) {
		log, err := Read(ctx, hub, of)
		if err == nil {
			err = AddChildOutcomes(ctx, hub, of.ExecutionID, log.Items, inputcheck.MaxPageSize)
		}
		if err != nil {
			yield(Cancellation{}, err)
			return
		}
		for i := range log.Items {
			if !yield(log.Items[i], nil) {
				return
			}
		}
	}
}
