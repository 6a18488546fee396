package failures

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errtree"
)

// maxTypeBytes limits the type of a failure.
const maxTypeBytes = 256

func truncateType(name string) string { return name[:min(len(name), maxTypeBytes)] }

// reserved are the types of failures that the engine creates. A Go type with such a name is stored with its package.
var reserved = []string{
	history.TypeError, history.TypePanic, history.TypeGoexit, history.TypeTimeout, history.TypeInterrupted,
	history.TypeCancelled,
	history.TypePayloadTooLarge, history.TypePayloadUnreadable, history.TypeEncode, history.TypeDecode,
}

// typeName returns the result of the ErrorType method of an error, or the name of its Go type without pointer, package
// and type arguments. It returns false for the wrappers of the standard library and of this package.
func typeName(err error) (string, bool) {
	if e, ok := err.(interface{ ErrorType() string }); ok {
		if name := e.ErrorType(); name != "" {
			return name, true
		}
	}
	t := reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	if t.Name() == "" || t == reflect.TypeFor[nonRetryableError]() || t == reflect.TypeFor[detailedError]() ||
		t.PkgPath() == "errors" || t.PkgPath() == "fmt" {
		return "", false
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	if slices.Contains(reserved, name) {
		name = path.Base(t.PkgPath()) + "." + name
	}
	return name, true
}

// joined returns the types in a tree of errors that its failure f and the causes of f do not name. Cancellations are
// omitted.
func (known Errors) joined(err error, f *history.Failure) []string {
	listed := slices.Collect(f.Types())
	var names []string
	known.eachType(err, func(name string) {
		name = truncateType(name)
		if len(names) < history.MaxJoined && name != history.TypeError && name != history.TypeCancelled &&
			!slices.Contains(listed, name) {
			listed, names = append(listed, name), append(names, name)
		}
	})
	return names
}

// eachType calls visit for the types of the errors in a tree, and of the failures of called code.
func (known Errors) eachType(err error, visit func(name string)) {
	if name, named := typeName(err); named {
		visit(name)
	}
	if known.Describe(err).Kind == Call {
		for name := range known.Called(err).Types() {
			visit(name)
		}
	}
	for _, cause := range errtree.Causes(err) {
		known.eachType(cause, visit)
	}
}
