package turns

import (
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
)

// hopelessIn is why a build's code cannot go on, if that is known; nil where it is to be tried. Poison is tried once a message: it may
// have been another's memory that ran out; so is what lacked a document or could not open one, since that may be restored.
func hopelessIn(build string, b *history.Blocked) *history.Failure {
	if why := b.Diagnoses[build]; why != nil && why.Type != history.TypePoison && why.Type != history.TypeCorrupt && why.Type != history.TypePayloadUnreadable {
		return why
	}
	return nil
}

// hopelessError means that, by history, the code of this build cannot go on. It is not run.
type hopelessError struct{ why *history.Failure }

func (e *hopelessError) Error() string {
	return "the instance is blocked in this build, so its code does not run: " + e.why.Message
}

// hopeless is the error of an execution whose code is known to be of no use in this build; nil where it is to be tried. A build
// without a name of its own is tried once a process: it may be another each time.
func (o *Orchestrator) hopeless(state *history.State) error {
	if o.options.BuildID == intake.DefaultBuildID {
		return nil
	}
	if why := hopelessIn(o.options.BuildID, &state.Blocked); why != nil {
		return &hopelessError{why}
	}
	return nil
}
