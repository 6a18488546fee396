package failures

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// Carried contains the parts of a failure for which an error of package perdure has no fields. It is comparable.
type Carried struct {
	joined  *[]string // nil if there are none
	details *errdetails.Details
}

// CarriedBy returns the Carried of a failure.
func CarriedBy(f *history.Failure) Carried {
	c := Carried{details: errdetails.Own(f)}
	if joined := f.Joined; len(joined) > 0 {
		c.joined = &joined
	}
	return c
}

// AddTo adds the parts to a failure and returns the failure.
func (c Carried) AddTo(f *history.Failure) *history.Failure {
	if c.joined != nil {
		f.Joined = *c.joined
	}
	c.details.AddTo(f)
	return f
}

// As implements the method As of an error. It finds the details of the failure, or the details of its cause if the
// failure has none.
func (c Carried) As(target any, cause *history.Failure) bool {
	return errdetails.As(target, c.details, cause)
}
