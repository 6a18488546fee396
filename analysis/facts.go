package analysis

import (
	"fmt"
	"strings"
)

// effects is the fact about a function or a package's variable: what comes of calling or reading it in orchestration
// code.
type effects struct{ List []effect }

// AFact marks effects as a fact.
func (*effects) AFact() {}

// String implements fmt.Stringer, for tests and debugging.
func (e *effects) String() string {
	var b strings.Builder
	for _, one := range e.List {
		fmt.Fprintf(&b, "%s: %s; ", one.Rule, one.Does)
	}
	return b.String()
}

// effect is one thing that code does.
type effect struct {
	Rule string
	// Does is what is done, as in "calls time.Now".
	Does string
	// Instead replaces the rule's advice where it is not empty.
	Instead string
	// At is where, as file:line.
	At string
	// Chain leads there, beginning with what is called first.
	Chain []step
	// Unsorted: it is the order of a slice, which the caller can settle by sorting.
	Unsorted bool
}

// step is one call on the way to an effect.
type step struct {
	Verb, Name string
	// At is where in it the way goes on.
	At string
}

// The verbs of steps.
const (
	calls = "calls"
	uses  = "uses"
	reads = "reads"
)

// key tells effects of a function apart.
func (e *effect) key() string { return e.Rule + " " + e.Does }

// through is the effect as one sees it who takes a step to it.
func (e *effect) through(verb, name string) effect {
	e2 := *e
	e2.Chain = append([]step{{Verb: verb, Name: name, At: e.At}}, e.Chain...)
	return e2
}

// tell describes the effect for whoever has it.
func (e *effect) tell(who string) string {
	var b strings.Builder
	b.WriteString(who)
	next := " "
	for _, s := range e.Chain {
		b.WriteString(next + s.Verb + " " + s.Name + " (" + s.At + ")")
		next = ", which "
		if s.Verb == reads && e.Rule != globalRead.id {
			next = ", whose value "
		}
	}
	b.WriteString(next + e.Does)
	return b.String()
}
