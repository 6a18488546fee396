package turns

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/provider"
)

type turnChain = intercept.Chain[perdure.TurnInfo, perdure.TurnResult]

func interceptorsOf(o *Options) *turnChain {
	return intercept.New("a turn", o.Logger, o.Interceptors, func(i perdure.Interceptor) intercept.Func[perdure.TurnInfo, perdure.TurnResult] { return i.Turn })
}

// interceptedTurn is a session's turn, within the interceptors that there are. They are left out where the turn is poison: it may be one of them
// that takes the process down, and the instance could never be blocked.
func interceptedTurn(ctx context.Context, s *session) (next, error) {
	if isPaused(s.x) {
		return telling(ctx, s, parkPaused) // which is no turn, and may end the instance
	}
	s.turnBegan = s.o.meter.Now()
	if t := s.x.start.TraceParent; t != "" {
		ctx = perdure.WithTraceParent(ctx, string(t))
	}
	if s.x.broken == nil {
		if err := s.poison.check(ctx, s.x.head.ExecutionID, false, &s.backlog); err != nil {
			return s.blockOrFail(ctx, err)
		}
	}
	_, poison := errors.AsType[*poisonError](s.x.broken)
	switch {
	case poison:
		next, err := s.turn(ctx)
		forgetTasks(s)
		return next, err
	case s.o.interceptors == nil:
		return telling(ctx, s, turnOfSession)
	}
	var what next
	result := s.o.interceptors.Run(ctx, turnInfo(s), func(ctx context.Context) perdure.TurnResult {
		var err error
		s.result = perdure.TurnResult{}
		what, err = telling(ctx, s, turnOfSession)
		s.result.Err = err
		return s.result
	})
	return what, result.Err
}

// telling tells interceptors what the commit that is made has begun and ended, once all is sent that follows from it.
func telling(ctx context.Context, s *session, makes func(context.Context, *session) (next, error)) (next, error) {
	next, err := makes(ctx, s)
	tellTasks(ctx, s)
	return next, err
}

func turnOfSession(ctx context.Context, s *session) (next, error) { return s.turn(ctx) }

// trace records the trace context of a turn in its first event, TurnStarted where code took part in it: what the turn causes is sent with it, whoever sends it and
// however often.
func trace(ctx context.Context, events []history.Event) {
	events[0].TraceParent = history.TraceParent(perdure.TraceParentFrom(ctx))
}

// noteResult keeps for interceptors what has become of a turn that is committed, and applied to the view.
func noteResult(s *session, t *provider.Turn) {
	if s.o.interceptors == nil {
		return
	}
	state := &s.x.state.Summary
	s.result = perdure.TurnResult{Committed: true, EventCount: len(t.Events), Status: state.Status()}
	switch last := &t.Events[len(t.Events)-1]; {
	case last.Kind == history.OrchestrationFailed:
		s.result.Failure = last.Error.Clone()
	case state.Blocked.Active:
		s.result.Failure = state.Blocked.Diagnosis.Clone()
	}
}

// turnInfo is what interceptors learn of the turn that is due.
func turnInfo(s *session) perdure.TurnInfo {
	taken := s.taken()
	return perdure.TurnInfo{
		InstanceID: s.item.InstanceID, ExecutionID: s.x.head.ExecutionID, Name: s.x.state.Name, Version: s.x.version,
		Sequence: s.x.head.Segment + 1, MessageCount: len(taken), Replayed: s.x.read != nil,
		TraceParents: traceParentsOf(taken), ScheduledByTurns: s.x.awaitedIn(taken),
	}
}

// mostCauses bounds what interceptors learn of what led to a turn.
const mostCauses = 32

// traceParentsOf lists the trace contexts that messages came with.
func traceParentsOf(messages []provider.InboxMessage) (all []string) {
	for i := range messages {
		if t := string(messages[i].TraceParent); t != "" && len(all) < mostCauses && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// awaitedIn lists the turns of this execution that have scheduled what messages bring.
func (x *execution) awaitedIn(messages []provider.InboxMessage) (all []int64) {
	add := func(eventID int64) {
		if eventID < 1 || eventID > x.state.LastID || len(all) == mostCauses {
			return
		}
		if at := x.segmentOf(eventID); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	for i := range messages {
		m := &messages[i]
		if !x.isFor(m) {
			continue
		}
		for j := range m.Outcomes {
			add(m.Outcomes[j].ActivityID)
		}
		add(m.TimerID)
		add(m.SourceEventID)
	}
	slices.Sort(all)
	return all
}
