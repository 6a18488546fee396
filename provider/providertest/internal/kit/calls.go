package kit

import (
	"errors"

	"github.com/perdure/perdure/provider"
)

// Counted is a number of calls. If the backend cannot count calls (Faults), comparisons are skipped.
type Counted struct {
	F *Fixture
	// Hits returns the number of calls.
	Hits func() int
}

// Count counts the calls of a kind until another Fault is set.
func (f *Fixture) Count(op Operation) Counted {
	if !f.Can(Faults) {
		return Counted{f, func() int { return 0 }}
	}
	return Counted{f, f.Fail(Fault{Operation: op, Failure: CountOnly})}
}

// WantPermanent fails if err is not an *Error with an operation, or is retryable.
func (f *Fixture) WantPermanent(err error) {
	f.T.Helper()
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Retryable || e.Op == "" {
		f.T.Errorf("error %v, want a permanent *provider.Error", err)
	}
}

// ErrOf returns the error of a call with a result.
func ErrOf[T any](_ T, err error) error { return err }

// LastErr returns the error that ends a sequence.
func LastErr[T any](seq func(yield func(T, error) bool)) (last error) {
	seq(func(_ T, err error) bool {
		last = err
		return true
	})
	return last
}

// Want fails if the number of counted calls is not n.
func (c Counted) Want(n int, what string) {
	c.F.T.Helper()
	if got := c.Hits(); got != n && c.F.Can(Faults) {
		c.F.T.Errorf("%d calls, want %d: %s", got, n, what)
	}
}
