package outputs

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Origin identifies the execution that sends outputs.
type Origin struct {
	InstanceID, ExecutionID string
	// StartID is the StartID of the instance.
	StartID string
	Parent  *history.Parent
	// Ended is true if the execution has ended. It then sends only detached starts, responses to events and updates,
	// and its outcome.
	Ended bool

	trace history.TraceParent // trace context of the segment
}

// TurnOrigin returns the origin of a turn's outputs.
func TurnOrigin(t *provider.Turn) Origin {
	x := Origin{InstanceID: t.InstanceID, ExecutionID: t.Head.ExecutionID}
	if n := len(t.Events); n > 0 {
		x.Ended = t.Events[n-1].Kind.Terminal()
	}
	if t.Before != nil {
		x.Parent = t.Before.Parent
		x.StartID = t.Before.StartID
	}
	return x
}

// HistoryOrigin returns the origin of an execution's outputs.
func HistoryOrigin(o *provider.Orchestration) Origin {
	return Origin{
		InstanceID: o.InstanceID, ExecutionID: o.Head.ExecutionID, StartID: o.Start().StartID, Parent: o.Start().Parent,
		Ended: o.Last().Kind.Terminal(),
	}
}
