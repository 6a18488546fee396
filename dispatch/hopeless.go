package dispatch

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// blocked is what history says of builds whose code cannot go on with an execution (R18). Each has said so since the last turn, and
// nothing that its code would see has changed since: what is parked comes behind what it failed on.
type blocked struct {
	// is: the execution is blocked. build is the one that said so last, why what it said.
	is    bool
	build string
	why   *history.Failure
	// in are all builds that have said so.
	in map[string]*history.Failure
}

// apply takes over what events say.
func (b *blocked) apply(events []history.Event) {
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.InputsParked:
			b.is, b.build, b.why = true, e.BuildID, e.Error
			if b.in == nil {
				b.in = map[string]*history.Failure{}
			}
			b.in[e.BuildID] = e.Error
		case e.Kind == history.TurnStarted, e.Kind.Terminal():
			*b = blocked{}
		default: // it says nothing of that
		}
	}
}

// says reports whether an event that blocks says what was known before it.
func (b *blocked) says(e *history.Event) bool {
	return e.Kind == history.InputsParked && b.is && b.build == e.BuildID && b.why != nil && e.Error != nil &&
		b.why.Type == e.Error.Type && b.why.Message == e.Error.Message
}

// hopeless is why a build's code cannot go on, if that is known; nil where it is to be tried. Poison is tried once a message: it may
// have been another's memory that ran out; so is what lacked a document, since that may be restored.
func (b *blocked) hopeless(build string) *history.Failure {
	if why := b.in[build]; why != nil && why.Type != history.TypePoison && why.Type != history.TypeCorrupt {
		return why
	}
	return nil
}

// hopelessError: history says that the code of this build cannot go on. It is not run.
type hopelessError struct{ why *history.Failure }

func (e *hopelessError) Error() string {
	return "the instance is blocked in this build, its code is not run: " + e.why.Message
}

// hopeless is the error of an execution whose code is known to be of no use in this build; nil where it is to be tried. A build
// without a name of its own is tried once a process: it may be another each time.
func (o *Orchestrator) hopeless(read *provider.Orchestration) error {
	if o.options.BuildID == defaultBuildID {
		return nil
	}
	var b blocked
	for i := range read.Segments {
		b.apply(read.Segments[i].Events)
	}
	if why := b.hopeless(o.options.BuildID); why != nil {
		return &hopelessError{why}
	}
	return nil
}
