package replay

import (
	"encoding/json"
	"time"
)

// phase is how far an execution has come.
type phase uint8

const (
	waitsToBegin phase = iota // the body has not begun: messages wait
	running
	ended
)

// life is how far an execution has come, and what its body begins with.
type life struct {
	phase   phase
	read    bool // OrchestrationStarted was replayed
	ran     bool // the body has begun
	doomed  bool // the turn under way terminates the execution before its body begins
	startAt time.Time
	input   json.RawMessage
	sealed  string // the name of the orchestration whose input is a sealed payload; empty: it is a document
}

// setStart takes over what OrchestrationStarted says. startAt is nil where the start is not delayed.
func (l *life) setStart(input json.RawMessage, startAt *time.Time) {
	l.read = true
	l.input = input
	if startAt != nil {
		l.startAt = *startAt
	}
}

// setSealed notes that the input is a sealed payload, of an orchestration of that name.
func (l *life) setSealed(name string) { l.sealed = name }

// setDoomed notes whether the turn that begins terminates an execution whose body has not begun.
func (l *life) setDoomed(doomed bool) { l.doomed = doomed }

// mayBegin reports whether the body is to begin at the time of a turn.
func (l *life) mayBegin(now time.Time) bool {
	return l.phase == waitsToBegin && !l.doomed && !now.Before(l.startAt)
}

// begin lets the body begin with the input that it returns.
func (l *life) begin() json.RawMessage {
	input := l.input
	l.input = nil
	l.phase = running
	l.ran = true
	return input
}

// hasBegun reports whether the body has begun.
func (l *life) hasBegun() bool { return l.phase != waitsToBegin }

// end ends the execution.
func (l *life) end() { l.phase = ended }

// hasEnded reports whether the execution is over.
func (l *life) hasEnded() bool { return l.phase == ended }
