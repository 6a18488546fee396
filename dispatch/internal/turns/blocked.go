package turns

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// triesBeforeBlocked is at how many deliveries of a message its instance is blocked, where the orchestration's code cannot take it: another
// environment may be of another build (R18). Those before may have failed of something else, as of calls that were throttled: a
// block is undone by the next turn, and an end, which is not, takes more than that (unlessBehind).
const triesBeforeBlocked = 3

// blockOrFail deals with code that cannot take the turn, for the reason err. The messages are delivered again, for another build to take;
// then they are parked in history, so that the instance stalls no other, and wait there for code that can. Where history shows already
// that this build cannot, they are parked at once.
func (s *session) blockOrFail(ctx context.Context, err error) (next, error) {
	return (&blocking{s: s, err: err}).begin(ctx)
}

// blockUnowned is blockOrFail where what the messages bring cannot be sealed, or made the execution's own. History must not have it as it is: they come again, until a
// build can.
func blockUnowned(ctx context.Context, s *session, err error) (next, error) {
	return (&blocking{s: s, err: err, unowned: true}).begin(ctx)
}

// blocking is a turn that the code cannot take, or may not, since the instance is paused.
type blocking struct {
	s   *session
	err error
	// why is nil where it is paused: no code is at fault.
	why *history.Failure
	// known: history shows already that this build cannot.
	known bool
	// unowned: the messages are not to be parked.
	unowned bool
	taken   []provider.InboxMessage
}

// begin gives up the code, where it is at fault; any other error is returned.
func (b *blocking) begin(ctx context.Context) (next, error) {
	if b.why = diagnosis(b.err); b.why == nil {
		return goOn, b.err
	}
	_, b.known = errors.AsType[*hopelessError](b.err)
	if !b.s.x.verified && !b.known {
		b.s.doubt = doubtOf(b.s.x, b.err)
		return verify, nil // the code failed on a history that may be old; that it is hopeless leads to nothing but a commit
	}
	b.s.x.breakOff(b.err)
	b.taken = b.s.taken()
	return b.resolve(ctx)
}

func (b *blocking) resolve(ctx context.Context) (next, error) {
	s, end := b.s, b.end()
	switch {
	case b.early(end):
		b.reportEarly(ctx)
		return goOn, b.err
	case s.x.read == nil && (end != nil || s.steps.any()):
		return verify, nil // what is outstanding stands in history alone, and what runs is sent by a repeated dispatch
	}
	end, err := b.unlessBehind(ctx, end)
	if err != nil {
		return goOn, err
	}
	if end != nil {
		leaveUntaken(end, b.taken...)
		return b.commit(ctx, s.x.withCancellations(*end))
	}

	if b.why != nil && b.why.Type == history.TypePoison { // before it is parked
		inHand := s.backlog.unacknowledged()[:len(s.backlog.inHand())+len(b.taken)] // from the one that leads to the turn: an earlier one may have taken it
		if err := s.poison.keep(ctx, inHand, b.why); err != nil {
			return goOn, err
		}
	}
	if b.unowned {
		b.taken = nil
	}
	parked := b.park()
	switch {
	case parked != nil:
		return b.commit(ctx, []history.Event{*parked})
	case b.unowned:
		return goOn, b.err
	case !s.x.verified:
		return verify, nil
	default:
		b.dropParked(ctx)
		return goOn, nil
	}
}

// early reports whether the messages are to be delivered again, so that an environment of another build may take them. What is
// blocked already can be parked at once, since the watch has other builds try it; what fails cannot be undone.
func (b *blocking) early(end *history.Event) bool {
	switch {
	case b.known || b.why.Type == history.TypePoison || b.s.backlog.deliveries() >= triesBeforeBlocked:
		return false
	case end != nil:
		return end.Kind == history.OrchestrationFailed
	default:
		return !b.s.x.state.Blocked.Active
	}
}

// end is the end of an instance whose code is not needed for it: it is terminated, or its code wants to fail; nil where there is none.
func (b *blocking) end() *history.Event {
	s := b.s
	for i := range b.taken {
		for _, in := range s.x.inputsOf(nil, &b.taken[i], &s.attempts) {
			if in.Kind == history.OrchestrationTerminated {
				return &in
			}
		}
	}
	if s.x.failOnNondeterminism && !b.known && b.why != nil && b.why.Type == history.TypeNondeterminism {
		return &history.Event{Kind: history.OrchestrationFailed, Error: b.why}
	}
	return nil
}

// park is the event that keeps the inputs and the diagnosis; nil when history has that diagnosis of this build, and there are no inputs.
// What is known to be hopeless in several builds stays blocked in the last of them, unless a wake asks this one: so the environments of a
// rollout do not each record it anew in turn, and the watch sees the build that it has asked.
func (b *blocking) park() *history.Event {
	s := b.s
	parked := history.Event{Kind: history.InputsParked, Inputs: failures(s.backlog.refused)}
	woken := false
	for i := range b.taken {
		parked.Inputs = s.x.inputsOf(parked.Inputs, &b.taken[i], &s.attempts)
		woken = woken || b.taken[i].Kind == provider.MessageWake
	}

	blocked := &s.x.state.Blocked
	switch {
	case isPaused(s.x): // nothing is said of builds
	case b.known && !woken:
		parked.Error, parked.BuildID = blocked.Diagnosis, blocked.LastBuild
	default:
		parked.Error, parked.BuildID = b.why, s.o.options.BuildID
	}
	if len(parked.Inputs) == 0 && (isPaused(s.x) || blocked.Contains(&parked)) {
		return nil
	}
	parked = parkedNow(s.o, parked)
	return &parked
}

// parkedNow dates the inputs that are parked.
func parkedNow(o *Orchestrator, parked history.Event) history.Event {
	now := o.options.Clock().UTC()
	for i := range parked.Inputs {
		parked.Inputs[i].Time = now
	}
	return parked
}

// commit consumes all messages but those behind a start.
func (b *blocking) commit(ctx context.Context, events []history.Event) (next, error) {
	s := b.s
	events = s.x.numbered(s.o.options.Clock(), events...)
	kind := events[len(events)-1].Kind
	if kind != history.InputsParked { // which causes nothing
		trace(ctx, events)
	}
	b.report(ctx, kind)

	t := s.x.newTurn(s.item.InstanceID, events)
	n := len(b.taken)
	if n > 0 {
		t.Watermark = b.taken[n-1].Position
	}
	refused, err := s.o.provider.AckOrchestrationItem(ctx, &t)
	switch {
	case errors.Is(err, provider.ErrTooLarge) && s.backlog.takeFewer(n): // each message by itself is not (R2)
		return takeFewer, nil
	case err != nil:
		return goOn, unsent(ctx, s, err, &t)
	}

	s.committed(ctx, &t, refused, n)
	if why := hopelessIn(s.o.options.BuildID, &s.x.state.Blocked); why != nil {
		s.x.breakOff(&hopelessError{why}) // what comes next is parked without another try
	}
	s.consume(0)
	return goOn, nil
}

// report logs that the code was not run to its end. What is parked without it is logged quietly: there may be thousands of it.
func (b *blocking) report(ctx context.Context, end history.Kind) {
	o := &b.s.o.options
	log := o.Logger.With(b.onNewer(ctx)...)
	// newlyBlocked is what turns a canary of this build back: what was blocked before it is no fault of it.
	about := []any{
		"instance", b.s.item.InstanceID, "execution", b.s.x.head.ExecutionID, "buildId", o.BuildID,
		"newlyBlocked", b.why != nil && !b.s.x.state.Blocked.Active, "attemptCount", b.s.backlog.deliveries(),
		"historyEndsWith", end, "error", b.err,
	}
	switch parked := end == history.InputsParked; {
	case parked && isPaused(b.s.x):
		log.DebugContext(ctx, "messages parked: the instance is paused", about...)
	case isPaused(b.s.x):
		log.InfoContext(ctx, "paused instance ended", append(about, "event", logevent.InstancePausedEnded)...)
	case parked && b.known:
		log.DebugContext(ctx, "messages parked: the instance is blocked", about...)
	case parked:
		faults.ReportError(ctx, b.s.item.InstanceID, b.err)
		log.ErrorContext(ctx, "instance blocked: its code cannot continue", append(about,
			"event", logevent.InstanceBlocked)...)
	default:
		faults.ReportError(ctx, b.s.item.InstanceID, b.err)
		log.ErrorContext(ctx, "instance ended although its code cannot continue", append(about,
			"event", logevent.InstanceEndedUnrun)...)
	}
}

// reportEarly logs that the code cannot take a turn that another build may take. It says newlyBlocked too: of a canary's turns nearly
// all are taken by the build before it at the second try, so that hardly an instance would be blocked by what shifts everything.
func (b *blocking) reportEarly(ctx context.Context) {
	o := &b.s.o.options
	log := o.Logger.With(b.onNewer(ctx)...)
	faults.ReportError(ctx, b.s.item.InstanceID, b.err)
	log.WarnContext(ctx, "code cannot process the turn, leaving its messages to another build",
		"event", logevent.TurnIncompatible, "instance", b.s.item.InstanceID, "buildId", o.BuildID,
		"newlyBlocked", !b.s.x.state.Blocked.Active, "attemptCount", b.s.backlog.deliveries(), "error", b.err)
}

// dealWithDamaged deals with an instance whose history cannot be read. A message may ask for its end, whatever is before it: no code is needed for
// that. One that is over takes nothing of what waits, and another instance is told so.
func dealWithDamaged(ctx context.Context, s *session, failed error) error {
	s.discard()
	if err := s.terminateDamaged(ctx, failed); err != nil || s.x != nil {
		return err
	}
	in, err := s.o.provider.ReadInstance(ctx, s.item.InstanceID)
	if err != nil || !in.Status.Terminal() {
		return failed
	}

	switch first := s.backlog.first(); {
	case first.IsSent():
		return refuseEvents(ctx, s, in.ExecutionID)
	case s.x.notForCode(*first):
		return failed
	default:
		s.drop(ctx, "instance has ended")
		return nil
	}
}

// terminateDamaged ends an instance whose history cannot be read, where a message asks for it.
func (s *session) terminateDamaged(ctx context.Context, failed error) error {
	waiting := s.backlog.waiting()
	i := slices.IndexFunc(waiting, func(m provider.InboxMessage) bool { return m.Kind == provider.MessageTerminate })
	if i < 0 {
		return nil
	}
	if _, err := s.load(ctx, provider.Strong); !errors.Is(err, provider.ErrCorrupt) {
		return err // it was the read that was damaged
	}
	if err := s.o.provider.TerminateCorrupt(ctx, &waiting[i]); err != nil {
		return err
	}
	s.o.options.Logger.WarnContext(ctx, "instance with an unreadable history terminated",
		"event", logevent.InstanceTerminatedUnreadable, "instance", s.item.InstanceID, "error", failed)
	return nil
}
