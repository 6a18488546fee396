package turns

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// documented matches a state in the table of docs/internals/turn.md, with its next states.
var documented = regexp.MustCompile(`(?m)^\| ([A-Z]+) \|.*\|([A-Z, ]*)\|$`)

func TestTransitions_documentation_hasTheSame(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/internals/turn.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[[2]string]bool{}
	states := documented.FindAllStringSubmatch(string(page), -1)
	if len(states) != int(stateCount) {
		t.Errorf("the page has %d states, the code has %d", len(states), stateCount)
	}
	for _, m := range states {
		for to := range strings.SplitSeq(strings.TrimSpace(m[2]), ", ") {
			if to != "" {
				shown[[2]string{m[1], to}] = true
			}
		}
	}
	for from := range transitions {
		for to := range stateCount {
			name := [2]string{state(from).String(), to.String()}
			if inCode := transitions[from].has(to); inCode != shown[name] {
				t.Errorf("%s --> %s: in the code %v, in the page %v", name[0], name[1], inCode, shown[name])
			}
			delete(shown, name)
		}
	}
	for name := range shown {
		t.Errorf("%s --> %s: not a pair of states", name[0], name[1])
	}
}

func TestTransitions_everyState_isReachableAndHasAFunction(t *testing.T) {
	t.Parallel()
	reachable := statesOf(receiving) | recoveries
	for range stateCount {
		for from, next := range transitions {
			if reachable.has(state(from)) {
				reachable |= next
			}
		}
	}
	for st := range stateCount {
		if !reachable.has(st) {
			t.Errorf("%v is not reachable", st)
		}
		if (functions[st] == nil) != (st == done) || (transitions[st] == 0) != (st == done) {
			t.Errorf("%v: has a function: %v, next states: %b", st, functions[st] != nil, transitions[st])
		}
	}
}

func TestStep_transitionIsNotInTheTable_failsTheSession(t *testing.T) { //nolint:paralleltest // changes the table
	o := newTestOrchestrator()
	s := o.newSession(testItem(), false)
	allowed := transitions[acknowledging]
	transitions[acknowledging] = 0
	defer func() { transitions[acknowledging] = allowed }()
	s.state = acknowledging
	if err := s.step(t.Context()); err == nil || s.state != acknowledging {
		t.Errorf("state %v, error %v", s.state, err)
	}
}
