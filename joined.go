package perdure

import (
	"iter"
	"slices"

	"github.com/perdure/perdure/history"
)

// boundedType cuts the name of a type that is too long to travel.
func boundedType(name string) string { return name[:min(len(name), maxTypeBytes)] }

// joinedTypes are names of types that came with a failure.
type joinedTypes []string

func newJoinedTypes(names []string) *joinedTypes {
	if len(names) == 0 {
		return nil
	}
	return (*joinedTypes)(&names)
}

func (j *joinedTypes) names() []string {
	if j == nil {
		return nil
	}
	return *j
}

// joinedIn names the types in a tree of errors that its failure f, with its causes, does not name. Cancels are left
// out: beside anything else they mean nothing.
func joinedIn(err error, f *history.Failure) []string {
	known := slices.Collect(f.Types())
	var names []string
	for name := range typesIn(err) {
		name = boundedType(name)
		if len(names) < history.MaxJoined && name != history.TypeError && name != history.TypeCancelled &&
			!slices.Contains(known, name) {
			known, names = append(known, name), append(names, name)
		}
	}
	return names
}

// typesIn are the names of the errors in a tree, and of those that failed what was called.
func typesIn(err error) iter.Seq[string] {
	return func(yield func(string) bool) { eachType(err, yield) }
}

func eachType(err error, yield func(string) bool) (more bool) {
	if name, named := errorName(err); named && !yield(name) {
		return false
	}
	var called *history.Failure
	switch e := err.(type) { //nolint:errorlint // one layer at a time
	case *ActivityError:
		called = e.failure()
	case *SubOrchestrationError:
		called = e.failure()
	}
	for name := range called.Types() {
		if !yield(name) {
			return false
		}
	}
	for _, cause := range unwrap(err) {
		if !eachType(cause, yield) {
			return false
		}
	}
	return true
}
