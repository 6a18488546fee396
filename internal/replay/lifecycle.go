package replay

import (
	"encoding/json"
	"time"
)

// lifecycle is the progress of an execution, and the start of its body.
type lifecycle struct {
	read        bool // OrchestrationStarted was replayed
	ran         bool // the body has started; until then, messages wait
	ended       bool
	terminating bool // the running turn terminates the execution before its body starts
	startAt     time.Time
	input       json.RawMessage
	encodedFor  string // the name of the orchestration if the input is an encoded payload
}

// setStart sets the input and the start time of the body. startAt is nil if the start is not delayed.
func (l *lifecycle) setStart(input json.RawMessage, startAt *time.Time) {
	l.read = true
	l.input = input
	if startAt != nil {
		l.startAt = *startAt
	}
}

// setEncoded records that the input is an encoded payload of the named orchestration.
func (l *lifecycle) setEncoded(orchestration string) { l.encodedFor = orchestration }

// setTerminating records whether the running turn terminates an execution whose body has not started.
func (l *lifecycle) setTerminating(terminating bool) { l.terminating = terminating }

// mayStart reports whether the body starts in a turn at a time.
func (l *lifecycle) mayStart(now time.Time) bool {
	return !l.hasStarted() && !l.terminating && !now.Before(l.startAt)
}

// start starts the body, and returns and releases its input.
func (l *lifecycle) start() json.RawMessage {
	input := l.input
	l.input = nil
	l.ran = true
	return input
}

// hasStarted reports whether the body has started, or never will because the execution has ended.
func (l *lifecycle) hasStarted() bool { return l.ran || l.ended }

// end ends the execution.
func (l *lifecycle) end() { l.ended = true }

// hasEnded reports whether the execution has ended.
func (l *lifecycle) hasEnded() bool { return l.ended }
