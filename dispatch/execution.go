package dispatch

import (
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// execution is an orchestration in memory: its coroutines, and the head they stand at.
type execution struct {
	instance *replay.Instance // nil when over
	head     provider.Head
	version  string
	// verified: head was read or written in this invocation, strongly consistent. Warm state is not (R5).
	verified bool
	over     bool
	read     *provider.Orchestration // as read in this invocation; nil when warm
}

func (x *execution) close() {
	if x.instance != nil {
		x.instance.Close()
		x.instance = nil
	}
}

// UnregisteredError means that the instance's orchestration is not in this build's registry.
type UnregisteredError struct {
	InstanceID, Name, Version string
}

func (e *UnregisteredError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("instance %q: orchestration %q is not registered in this build", e.InstanceID, e.Name)
	}
	return fmt.Sprintf("instance %q: orchestration %q version %q is not registered in this build", e.InstanceID, e.Name, e.Version)
}

// revive rebuilds an execution by replaying what was read.
func (o *Orchestrator) revive(read *provider.Orchestration) (*execution, error) {
	events, err := read.Events()
	if err != nil {
		return nil, fmt.Errorf("dispatch: instance %q: %w: %w", read.InstanceID, provider.ErrCorrupt, err)
	}
	x := &execution{head: read.Head, verified: read.Verified, read: read}
	if events[len(events)-1].Kind.Terminal() {
		x.over = true
		return x, nil
	}
	name, version := bound(events)
	code, ok := o.options.Registry.Orchestration(name, version)
	if !ok {
		return nil, &UnregisteredError{InstanceID: read.InstanceID, Name: name, Version: version}
	}
	x.version = code.Version
	x.instance = replay.New(code, replay.Options{
		InstanceID: read.InstanceID, ExecutionID: read.Head.ExecutionID, Logger: o.options.Logger, TurnLimit: o.options.TurnLimit,
	})
	if err := x.instance.Replay(events); err != nil {
		x.close()
		return nil, fmt.Errorf("dispatch: instance %q: replay: %w", read.InstanceID, err)
	}
	return x, nil
}

// bound is the code an execution runs: the first turn binds the version.
func bound(events []history.Event) (name, version string) {
	name, version = events[0].Name, events[0].Version
	if len(events) > 1 && events[1].Kind == history.TurnStarted {
		version = events[1].Version
	}
	return name, version
}
