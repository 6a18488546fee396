// Package rehearsal replays histories against code that is not deployed: in a test, or in a function's binary that the command line
// has started to ask it (Serve).
package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/vault"
)

// Execution is what is replayed.
type Execution struct {
	InstanceID  string
	ExecutionID string
	// Events is its history, from the first event on.
	Events []history.Event
	// Fetch finds what the events refer to.
	Fetch func(history.Reference) (json.RawMessage, error)
	// Vault opens what is sealed; nil: nothing is.
	Vault *vault.Vault
}

// Replay runs the code in r against the history of an execution. It returns an error where the code would not have taken the same decisions,
// which would block the instance, and how its inputs differ where they do.
func Replay(r *registry.Registry, x *Execution) (differences replay.Differences, err error) {
	runs := history.NewState(0, x.Events...)
	code, ok := r.Orchestration(runs.Name, runs.Version)
	if !ok {
		return differences, &UnregisteredError{Name: runs.Name, Version: runs.Version}
	}

	seals := x.Vault.ForReplay(context.Background(), perdure.PayloadInfo{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID})
	i := replay.New(code, replay.Options{
		InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Logger: slog.New(slog.DiscardHandler), Fetch: x.Fetch,
		Seals: &seals,
	})
	defer i.Close()
	err = i.Replay(x.Events)
	return i.Differences(), err
}

// UnregisteredError is the error where the code does not have an orchestration.
type UnregisteredError struct{ Name, Version string }

// Error implements error.
func (e *UnregisteredError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("orchestration %q is not registered", e.Name)
	}
	return fmt.Sprintf("orchestration %q version %q is not registered", e.Name, e.Version)
}
