package orders

import (
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
)

// saga is what has been done, as the ways to undo it.
type saga struct{ compensations []compensation }

type compensation struct {
	what string
	undo func(ctx *perdure.OrchestrationContext) error
}

func (s *saga) add(what string, undo func(ctx *perdure.OrchestrationContext) error) {
	s.compensations = append(s.compensations, compensation{what, undo})
}

// undo undoes the last first, since what was done later builds on what was done before. One that fails stops no other, and nor
// does the cancel of the order, which may be what it is undone for.
func (s *saga) undo(ctx *perdure.OrchestrationContext) error {
	ctx = perdure.WithoutCancel(ctx)
	var errs []error
	for _, c := range slices.Backward(s.compensations) {
		if err := c.undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.what, err))
		}
	}
	return errors.Join(errs...)
}
