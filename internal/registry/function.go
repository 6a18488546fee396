package registry

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// functions maps the code of function values to their registered names.
type functions map[uintptr][]string

// add adds the name of a function value. It ignores closures, which have no identity: all closures of a literal share
// their code.
func (fs functions) add(fn any, name string) {
	pc := reflect.ValueOf(fn).Pointer()
	if !isClosure(functionName(pc)) && !slices.Contains(fs[pc], name) {
		fs[pc] = append(fs[pc], name)
	}
}

// name returns the registered name of a function value. If there is not exactly one, why is the reason. of is the kind
// of function and instead is the alternative call, both for the reason.
func (fs functions) name(of, instead string, fn any) (name, why string) {
	pc := reflect.ValueOf(fn).Pointer()
	names := fs[pc]
	if len(names) == 1 {
		return names[0], ""
	}
	return "", refusal(of, instead, functionName(pc), names)
}

func refusal(of, instead, function string, names []string) string {
	hint := fmt.Sprintf("no %s is registered with it", of)
	switch {
	case len(names) > 1:
		hint = fmt.Sprintf("it is registered as %s, and a function value does not distinguish these names, "+
			"or the receivers of a method", list(names))
	case isClosure(function):
		hint = "it is a closure, which has no identity even if it is registered"
	case strings.HasSuffix(function, "-fm"):
		hint += " (a method that is taken from an interface differs from the method of the concrete type)"
	}
	return fmt.Sprintf("cannot determine which %s function %s is: %s; call it %s", of, function, hint, instead)
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range slices.Sorted(slices.Values(names)) {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, " and ")
}

// functionName returns the symbol of a function, not of a function that is inlined at its entry.
func functionName(pc uintptr) string {
	frames := runtime.CallersFrames([]uintptr{pc + 1})
	for {
		frame, more := frames.Next()
		if !more {
			return frame.Function
		}
	}
}

var (
	// literal matches the symbols of function literals, also of inlined ones.
	literal = regexp.MustCompile(`\.(func|gowrap|deferwrap)?\d+$|-range\d+$`)
	// unique matches the symbols of literals that initialize package variables, and of declared functions such as
	// func1.
	unique = regexp.MustCompile(`\.(init|glob\.)\.func\d+$|^([^/]*/)*[^/.]+\.func\d+$`)
)

func isClosure(function string) bool {
	return literal.MatchString(function) && !unique.MatchString(function)
}
