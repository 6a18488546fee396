package registry

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// functions are the names that function values stand for.
type functions map[uintptr][]string

// add remembers what a function value is called. A closure has no identity: all that one literal makes share their code,
// whatever they captured. Several versions of one name are one.
func (fs functions) add(fn any, name string) {
	pc := reflect.ValueOf(fn).Pointer()
	if !isClosure(functionName(pc)) && !slices.Contains(fs[pc], name) {
		fs[pc] = append(fs[pc], name)
	}
}

// name is what a function value is called. Where that cannot be told, why says so: of is what such a function is, instead how else it
// can be called.
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
		hint = fmt.Sprintf("it is registered as %s, which a function value does not tell apart (a method's receivers are not either)", list(names))
	case isClosure(function):
		hint = "it is a closure, which has no identity, registered or not"
	case strings.HasSuffix(function, "-fm"):
		hint += " (a method taken from an interface is another function than that of the type behind it)"
	}
	return fmt.Sprintf("cannot tell which %s the function %s is: %s; call it %s", of, function, hint, instead)
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range slices.Sorted(slices.Values(names)) {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, " and ")
}

// functionName is the symbol of a function, not of one that the compiler inlined at its entry.
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
	// literal is how the compiler calls function literals, inlined ones as well.
	literal = regexp.MustCompile(`\.(func|gowrap|deferwrap)?\d+$|-range\d+$`)
	// unique are literals that a package variable was set to, of which there is but one; and a declared function func1.
	unique = regexp.MustCompile(`\.(init|glob\.)\.func\d+$|^([^/]*/)*[^/.]+\.func\d+$`)
)

func isClosure(function string) bool {
	return literal.MatchString(function) && !unique.MatchString(function)
}
