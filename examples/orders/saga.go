package orders

import (
	"errors"
	"fmt"
	"slices"
)

// saga is what has been done, as the ways to undo it.
type saga struct{ compensations []compensation }

type compensation struct {
	what string
	undo func() error
}

func (s *saga) add(what string, undo func() error) {
	s.compensations = append(s.compensations, compensation{what, undo})
}

// undo undoes the last first, since what was done later builds on what was done before. One that fails stops no other.
func (s *saga) undo() error {
	var errs []error
	for _, c := range slices.Backward(s.compensations) {
		if err := c.undo(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.what, err))
		}
	}
	return errors.Join(errs...)
}
