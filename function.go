package perdure

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// nameFunction remembers what an activity's function value is called. A closure has no identity: all that one literal
// makes share their code, whatever they captured.
func (r *Registry) nameFunction(pc uintptr, name string) {
	if !isClosure(functionName(pc)) {
		r.functions[pc] = append(r.functions[pc], name)
	}
}

// activityOf is the activity that a function value stands for. Where that cannot be told, why says so.
func (r *Registry) activityOf(fn any) (a Activity, why string) {
	pc := reflect.ValueOf(fn).Pointer()
	names := r.functions[pc]
	if len(names) == 1 {
		return r.activities[names[0]], ""
	}
	return Activity{}, refusal(functionName(pc), names)
}

func refusal(function string, names []string) string {
	hint := "no activity is registered with it"
	switch {
	case len(names) > 1:
		hint = fmt.Sprintf("it is registered as %s, which a function value does not tell apart (a method's receivers are not either)", list(names))
	case isClosure(function):
		hint = "it is a closure, which has no identity, registered or not"
	case strings.HasSuffix(function, "-fm"):
		hint += " (a method taken from an interface is another function than that of the type behind it)"
	}
	return fmt.Sprintf("cannot tell which activity the function %s is: %s; call it by name or by reference", function, hint)
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
