package turns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// Ask implements dispatch.Orchestrator.QueryInstance. It replays the instance and does not use a warm one: a handler
// may change state that it should only read, and a turn that used the changed state would not match its history. Reads
// are strongly consistent.
func Ask(ctx context.Context, o *Orchestrator, q provider.QueryRequest) (answer json.RawMessage, err error) {
	err = o.inTime(ctx, func(ctx context.Context) error {
		if err := o.asked.enter(ctx, &q); err != nil {
			return err
		}
		defer o.asked.leave()
		answer, err = ask(ctx, o, &q)
		return err
	})
	return answer, err
}

func ask(ctx context.Context, o *Orchestrator, q *provider.QueryRequest) (json.RawMessage, error) {
	read, err := o.provider.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: q.InstanceID}, provider.Strong)
	if err != nil {
		return nil, fmt.Errorf("dispatch: query %q: %w", q.Name, err)
	}
	events, err := read.Events()
	if err != nil {
		return nil, fmt.Errorf("dispatch: query %q: instance %q: %w: %w", q.Name, q.InstanceID, provider.ErrCorrupt, err)
	}
	code, err := codeFor(o, q, read.State(history.TrackTimers))
	if err != nil {
		return nil, err
	}
	if err := o.asked.check(q, &code); err != nil {
		return nil, err
	}

	seals := o.encoding.ForReplay(ctx, perdure.PayloadInfo{InstanceID: q.InstanceID, ExecutionID: read.Head.ExecutionID})
	i := replay.New(code, replay.Options{
		InstanceID: q.InstanceID, ExecutionID: read.Head.ExecutionID, Logger: slog.New(slog.DiscardHandler), TurnLimit: timeToAsk(ctx, o),
		ExactRetries: o.options.DisableJitter, Fetch: o.fetch(ctx, q.InstanceID),
		Seals: &seals,
	})
	defer i.Close()
	if err = i.Replay(events); err != nil {
		noteHung(o, q, &code, i, err)
		return nil, replayRefusal(q, err)
	}
	answer, err := i.Query(q.Name, q.Input)
	noteHung(o, q, &code, i, err)
	return answerOf(q, &answer, err)
}

// noteHung keeps in mind that code has not come back, if that is what err says.
func noteHung(o *Orchestrator, q *provider.QueryRequest, code *replay.Orchestration, i *replay.Instance, err error) {
	if _, hung := errors.AsType[*replay.BlockedOutsideError](err); hung {
		o.asked.note(q, code, i.Gone())
	}
}

// codeFor is the code of an instance, if it may be run. What is poison in this build would take this process down too.
func codeFor(o *Orchestrator, q *provider.QueryRequest, state *history.State) (replay.Orchestration, error) {
	if o.isBlockedAsPoison(&state.Summary) {
		why := state.Blocked.Diagnoses[o.options.BuildID]
		return replay.Orchestration{}, refusal(q, provider.QueryBlocked,
			"the instance's code crashed its process and does not run in this build: "+why.Message, why)
	}
	code, ok := o.registry.Orchestration(state.Name, state.Version)
	if !ok {
		e := &unregisteredError{InstanceID: q.InstanceID, Name: state.Name, Version: state.Version}
		return code, refusal(q, provider.QueryUnregistered, fmt.Sprintf("%v (%q); deploy a build that registers it",
			e, o.options.BuildID), nil)
	}
	return code, nil
}

// timeToAsk is how long the replay and the handler may take, each: both must end before the invocation does, or that fails, as if the build were bad.
func timeToAsk(ctx context.Context, o *Orchestrator) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return o.options.TurnTimeout
	}
	return max(min(o.options.TurnTimeout, end.Sub(o.options.Clock())/2), time.Millisecond)
}

func refusal(q *provider.QueryRequest, code provider.QueryCode, message string, why *history.Failure) *provider.QueryError {
	return &provider.QueryError{InstanceID: q.InstanceID, Query: q.Name, Code: code, Message: message, Failure: why}
}

// replayRefusal is the error of a query of an instance whose code could not be brought to where it stands.
func replayRefusal(q *provider.QueryRequest, err error) error {
	why := diagnosis(err)
	if why == nil {
		return fmt.Errorf("dispatch: query %q: instance %q: replay: %w", q.Name, q.InstanceID, err)
	}
	return refusal(q, provider.QueryBlocked, "the replay failed: "+why.Message, why)
}

// answerOf is what a handler's answer, or an error of the query, is to who has asked.
func answerOf(q *provider.QueryRequest, answer *replay.QueryAnswer, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, queryRefusal(q, err)
	}
	switch f := answer.Failure; {
	case f == nil:
		return answer.Output, nil
	case answer.BadInput:
		return nil, refusal(q, provider.QueryBadInput, f.Message, f)
	case answer.TooLarge:
		return nil, refusal(q, provider.QueryResultTooLarge, f.Message, f)
	case f.Type == history.TypePanic:
		return nil, refusal(q, provider.QueryFailed, "the handler panicked: "+f.Message, f)
	default:
		return nil, refusal(q, provider.QueryFailed, "the handler failed: "+f.Message, f)
	}
}

// mostKnown bounds the names of queries in an error: what a function answers has a limit, and over it the invocation fails.
const mostKnown = 100

func queryRefusal(q *provider.QueryRequest, err error) error {
	if _, ok := errors.AsType[*replay.NotBegunError](err); ok {
		return refusal(q, provider.QueryNotStarted, "the instance has not run its first turn; try again later", nil)
	}
	if e, ok := errors.AsType[*replay.UnknownQueryError](err); ok {
		known, more := e.Known, ""
		if n := len(known) - mostKnown; n > 0 {
			known, more = known[:mostKnown], fmt.Sprintf(" and %d more", n)
		}
		r := refusal(q, provider.QueryHandlerNotFound,
			fmt.Sprintf("the code has not set this query handler so far; handlers: %q%s", known, more), nil)
		r.Known = known
		return r
	}
	if e, ok := errors.AsType[*replay.QueryMisuseError](err); ok {
		return refusal(q, provider.QueryNotReadOnly,
			"the handler must only read, but scheduled work or waited at "+replay.Where(e.Stack), nil)
	}
	if e, ok := errors.AsType[*replay.BlockedOutsideError](err); ok {
		return refusal(q, provider.QueryHandlerTimedOut, fmt.Sprintf("the handler did not return within %v; it was at %s",
			e.Limit, replay.Where(e.Stack)), nil)
	}
	return fmt.Errorf("dispatch: query %q: instance %q: %w", q.Name, q.InstanceID, err)
}
