package turns

import (
	"context"
	"fmt"
)

// state is the state of a session. docs/internals/turn.md describes the states.
type state uint8

const (
	receiving     state = iota // selects the next state by the waiting messages
	starting                   // creates the instance of a start message
	loading                    // reads the history
	verifying                  // reads the history again, with strong consistency (R5)
	redispatching              // sends the outputs of committed turns again (R4)
	deciding                   // decides between a turn and other effects of the messages
	responding                 // responds to another instance whose message the code must not receive
	pausing                    // commits a pause or a resume (R25)
	running                    // runs the code and its inline activities
	committing                 // commits the turn
	sending                    // sends inline activities to their queues and begins the next execution
	parking                    // commits the messages without running code (R18, R25)
	dropping                   // drops messages without effect
	acknowledging              // acknowledges the consumed messages
	conflicted                 // discards a turn whose segment another process has committed
	corrupted                  // handles an unreadable history
	done
	stateCount
)

var stateNames = [stateCount]string{
	receiving: "RECEIVE", starting: "START", loading: "LOAD", verifying: "VERIFY", redispatching: "REDISPATCH",
	deciding: "DECIDE", responding: "RESPOND", pausing: "PAUSE", running: "RUN", committing: "COMMIT", sending: "SEND",
	parking: "PARK", dropping: "DROP", acknowledging: "ACKNOWLEDGE", conflicted: "CONFLICT", corrupted: "CORRUPT",
	done: "DONE",
}

// String returns the name of a state in the documentation.
func (st state) String() string { return stateNames[st] }

// isTurn reports whether a state is part of a turn, which runs inside interceptors.
func (st state) isTurn() bool {
	return st == running || st == committing || st == sending || st == parking
}

type stateSet uint32

func statesOf(all ...state) (set stateSet) {
	for _, st := range all {
		set |= 1 << st
	}
	return set
}

func (set stateSet) has(st state) bool { return set&(1<<st) != 0 }

// transitions are the states that can follow each state.
var transitions = [stateCount]stateSet{
	receiving:     statesOf(starting, loading, verifying, redispatching, deciding, responding, acknowledging, done),
	starting:      statesOf(receiving, acknowledging),
	loading:       statesOf(receiving, verifying),
	verifying:     statesOf(receiving),
	redispatching: statesOf(verifying, acknowledging),
	deciding:      statesOf(verifying, responding, pausing, running, parking, dropping, acknowledging),
	responding:    statesOf(receiving, acknowledging),
	pausing:       statesOf(verifying, acknowledging),
	running:       statesOf(verifying, committing, parking, dropping),
	committing:    statesOf(verifying, sending, parking),
	sending:       statesOf(receiving, acknowledging, done),
	parking:       statesOf(verifying, dropping, acknowledging),
	dropping:      statesOf(acknowledging),
	acknowledging: statesOf(receiving),
	conflicted:    statesOf(receiving),
	corrupted:     statesOf(receiving, dropping, acknowledging),
}

// recoveries are the states that can follow an error in any state. The causes are a commit of another process, an
// unreadable history, and a missing instance.
var recoveries = statesOf(conflicted, corrupted, dropping)

// functions are the functions of the states. Each returns the next state.
var functions = [stateCount]func(*session, context.Context) (state, error){
	receiving: (*session).receive, starting: (*session).start, loading: (*session).load, verifying: (*session).verify,
	redispatching: (*session).redispatch, deciding: (*session).decide, responding: (*session).respond,
	pausing: (*session).pause, running: (*session).runCode, committing: (*session).commit, sending: (*session).send,
	parking: (*session).park, dropping: (*session).drop, acknowledging: (*session).acknowledge,
	conflicted: (*session).resolveConflict, corrupted: (*session).handleCorrupt,
}

// InvalidTransition is called if a session makes a transition that is not in the table. The session then fails, and its
// messages are redelivered. Tests replace it.
var InvalidTransition = func(error) {}

// step calls the function of the session's state and makes the transition.
func (s *session) step(ctx context.Context) error {
	next, err := functions[s.state](s, ctx)
	if err != nil {
		return err
	}
	if !transitions[s.state].has(next) {
		err := fmt.Errorf("dispatch: instance %q: invalid session transition from %v to %v",
			s.item.InstanceID, s.state, next)
		InvalidTransition(err)
		return err
	}
	s.state = next
	return nil
}
