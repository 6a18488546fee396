// Package replaycheck replays histories against code that is not deployed. The code runs in a test, or in the binary of
// a function, which the command line starts and sends requests to (Serve).
package replaycheck

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

// Execution is an execution to replay.
type Execution struct {
	InstanceID  string
	ExecutionID string
	// Events is the history, from the first event on.
	Events []history.Event
	// Fetch returns the document of a reference in the events.
	Fetch    func(history.Reference) (json.RawMessage, error)
	Encoding *payloads.Encoding // decodes the payloads; nil if no payload is encoded
}

// Replay runs the code in r against the history of an execution. It returns an error if the code makes other decisions
// than the history, which would block the instance. It also returns the inputs that differ from the history.
func Replay(r *registry.Registry, x *Execution) (differences replay.Differences, err error) {
	runs := history.NewState(0, x.Events...)
	code, ok := r.Orchestration(runs.Name, runs.Version)
	if !ok {
		return differences, &UnregisteredError{Name: runs.Name, Version: runs.Version}
	}

	info := perdure.PayloadInfo{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID}
	decoder := x.Encoding.ForReplay(context.Background(), info)
	i := replay.New(code, replay.Options{
		InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Logger: slog.New(slog.DiscardHandler), Fetch: x.Fetch,
		Decoder: &decoder,
	})
	defer i.Close()
	err = i.Replay(x.Events)
	return i.Differences(), err
}

// UnregisteredError is returned if r does not contain the orchestration.
type UnregisteredError struct{ Name, Version string }

// Error implements error.
func (e *UnregisteredError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("orchestration %q is not registered", e.Name)
	}
	return fmt.Sprintf("orchestration %q version %q is not registered", e.Name, e.Version)
}
