package effects

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/analysis/internal/rules"
)

// Fact lists the effects of a call of a function, or of a read of a package variable, in orchestration code.
type Fact struct{ List []effect }

// AFact marks Fact as a fact.
func (*Fact) AFact() {}

// String implements fmt.Stringer, for tests and debugging.
func (f *Fact) String() string {
	var b strings.Builder
	for _, e := range f.List {
		fmt.Fprintf(&b, "%s: %s; ", e.Rule, e.Does)
	}
	return b.String()
}

// effect is an operation that breaks a rule.
type effect struct {
	Rule string
	// Does describes the operation, for example "calls time.Now".
	Does string
	// Instead replaces the rule's advice if it is not empty.
	Instead string
	// At is the position, as file:line.
	At string
	// Chain lists the calls from the function to the operation, in call order.
	Chain []step
	// Unsorted marks an effect on the order of a slice. A caller can remove the effect by sorting the slice.
	Unsorted bool
}

// step is one call on the way to an effect.
type step struct {
	Verb, Name string
	// At is the position in Name of the next step or the operation.
	At string
}

// Verbs of steps.
const (
	calls = "calls"
	uses  = "uses"
	reads = "reads"
)

// key identifies an effect within a function.
func (e *effect) key() string { return e.Rule + " " + e.Does }

// through returns the effect for a caller, with the call as the first step.
func (e *effect) through(verb, name string) effect {
	e2 := *e
	e2.Chain = append([]step{{Verb: verb, Name: name, At: e.At}}, e.Chain...)
	return e2
}

func (e *effect) describe(function string) string {
	var b strings.Builder
	b.WriteString(function)
	next := " "
	for _, s := range e.Chain {
		b.WriteString(next + s.Verb + " " + s.Name + " (" + s.At + ")")
		next = ", which "
		if s.Verb == reads && e.Rule != rules.GlobalRead.ID {
			next = ", whose value "
		}
	}
	b.WriteString(next + e.Does)
	return b.String()
}
