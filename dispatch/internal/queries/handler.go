// Package queries runs query handlers of instances.
package queries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// Handler handles queries. It is safe for concurrent use.
type Handler struct {
	loader *execution.Loader
	limits *limits
}

// NewHandler returns a handler that replays with the options of a loader.
func NewHandler(l *execution.Loader) *Handler { return &Handler{loader: l, limits: newLimits()} }

// Handle replays an instance and runs a query handler of its code. It does not use a warm execution, because a handler
// may change state that it should only read. Later turns would then not match the history. Reads are strongly
// consistent.
func (h *Handler) Handle(ctx context.Context, q *provider.QueryRequest) (json.RawMessage, error) {
	if err := h.limits.enter(ctx, q); err != nil {
		return nil, err
	}
	defer h.limits.leave()
	return h.handle(ctx, q)
}

func (h *Handler) handle(ctx context.Context, q *provider.QueryRequest) (json.RawMessage, error) {
	item := &provider.OrchestrationItem{InstanceID: q.InstanceID}
	read, err := h.loader.Provider.ReadOrchestration(ctx, item, provider.Strong)
	if err != nil {
		return nil, fmt.Errorf("dispatch: query %q: %w", q.Name, err)
	}
	events, err := read.Events()
	if err != nil {
		return nil, fmt.Errorf("dispatch: query %q: instance %q: %w: %w",
			q.Name, q.InstanceID, provider.ErrCorrupt, err)
	}
	code, err := h.codeFor(q, read.State(history.TrackTimers))
	if err != nil {
		return nil, err
	}
	if err := h.limits.check(q, &code); err != nil {
		return nil, err
	}

	about := perdure.PayloadInfo{InstanceID: q.InstanceID, ExecutionID: read.Head.ExecutionID}
	payloads := h.loader.Encoding.ForReplay(ctx, about)
	i := replay.New(code, replay.Options{
		InstanceID: q.InstanceID, ExecutionID: read.Head.ExecutionID, Logger: slog.New(slog.DiscardHandler),
		TurnTimeout: h.timeLimit(ctx), ExactRetries: h.loader.ExactRetries, Decoder: &payloads,
		Fetch: func(r history.Reference) (json.RawMessage, error) {
			return h.loader.Provider.ReadDocument(ctx, q.InstanceID, r)
		},
	})
	defer i.Close()
	if err = i.Replay(events); err != nil {
		h.recordHung(q, &code, i, err)
		return nil, replayError(q, err)
	}
	output, err := i.Query(q.Name, q.Input)
	h.recordHung(q, &code, i, err)
	return result(q, &output, err)
}

// recordHung records that code has not returned, if err reports that.
func (h *Handler) recordHung(q *provider.QueryRequest, code *replay.Orchestration, i *replay.Instance, err error) {
	if _, hung := errors.AsType[*replay.BlockedOutsideError](err); hung {
		h.limits.addHung(q, code, i.Gone())
	}
}

// codeFor returns the code of an instance, if it may run. Code that is poison in this build would crash this process.
func (h *Handler) codeFor(q *provider.QueryRequest, state *history.State) (replay.Orchestration, error) {
	if poison.IsBlocked(h.loader.BuildID, &state.Summary) {
		why := state.Blocked.Diagnoses[h.loader.BuildID]
		return replay.Orchestration{}, refusal(q, provider.QueryBlocked,
			"the instance's code crashed its process and does not run in this build: "+why.Message, why)
	}
	code, ok := h.loader.Registry.Orchestration(state.Name, state.Version)
	if !ok {
		e := &execution.UnregisteredError{InstanceID: q.InstanceID, Name: state.Name, Version: state.Version}
		return code, refusal(q, provider.QueryUnregistered, fmt.Sprintf("%v (%q); deploy a build that registers it",
			e, h.loader.BuildID), nil)
	}
	return code, nil
}

// timeLimit returns the time limit of the replay and of the handler. Both must end before the invocation. Otherwise,
// the invocation would fail, and the build would appear to be at fault.
func (h *Handler) timeLimit(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return h.loader.TurnTimeout
	}
	return max(min(h.loader.TurnTimeout, end.Sub(h.loader.Clock())/2), time.Millisecond)
}
