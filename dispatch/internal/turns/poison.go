package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// poisonError means that a turn of the instance has taken its process down again and again (R13).
type poisonError struct {
	InstanceID string
	// Died is how many deliveries of the message that leads to the turn ended so, one after the other.
	Died int
	// Interceptors are those that were called around the turn.
	Interceptors []string
}

func (e *poisonError) Error() string {
	code := "its code"
	if len(e.Interceptors) > 0 {
		code = "its code or an interceptor (" + strings.Join(e.Interceptors, ", ") + ")"
	}
	return fmt.Sprintf("instance %q: its turn started and did not end in %d deliveries: %s crashed the process "+
		"(out of memory, os.Exit, a fatal error) or exceeded the time of the invocation. "+
		"See the orchestrator's log, and deploy a fix: the instance then continues", e.InstanceID, e.Died, code)
}

// poisonCheck is what a session knows of its delivery, once it was looked at. Only its own methods change it.
type poisonCheck struct {
	base       *intake.Base
	most       int // deaths, before what leads here is poison
	around     *turnChain
	listeners  *taskListeners
	instanceID string
	// alone: no other code runs in the process meanwhile.
	alone bool

	looked  bool
	mark    *provider.Attempt // nil: not marked
	verdict *poisonError      // nil: the code may run
	copied  bool              // the records are in the dead letters
}

// check leaves a mark before the instance's code runs, and be it to replay, where the message that leads to it was delivered
// before: a suspectError where others stand already and it is not alone, a poisonError when too many do. In an instance that is blocked
// as poison already each message has one try, alone: more memory is no new build.
func (p *poisonCheck) check(ctx context.Context, executionID string, blocked bool, b *backlog) error {
	if p.looked || len(b.unacknowledged()) == 0 {
		return p.err()
	}
	return p.look(ctx, executionID, blocked, b.leads())
}

func (p *poisonCheck) look(ctx context.Context, executionID string, blocked bool, m *provider.InboxMessage) error {
	switch {
	case !blocked && !intake.Doubtful(&m.Record, m.Redrive):
		return nil
	case blocked && !p.alone:
		return &suspectError{died: p.most}
	}

	a := provider.Attempt{ExecutionID: executionID, Record: m.Redrive.Of(m.Record), Batched: !p.alone}
	died, err := intake.Mark(ctx, p.base, a)
	if err != nil {
		return fmt.Errorf("dispatch: instance %q: write crash marker: %w", p.instanceID, err)
	}
	poison := died > p.most || blocked && died > 0
	if !poison && !p.alone && died > 0 {
		return &suspectError{died: died}
	}

	p.looked = true
	if p.alone || died == 0 {
		p.mark = &a
	}
	if poison {
		p.verdict = &poisonError{InstanceID: p.instanceID, Died: died, Interceptors: append(p.around.Names(), p.listeners.Names()...)}
	}
	return p.err()
}

// err is the verdict, if there is one.
func (p *poisonCheck) err() error {
	if p.verdict == nil {
		return nil
	}
	return p.verdict
}

// unmark takes the mark away: the process lives. It costs nothing where the messages are done with, unless the mark was made alone:
// should they not be deleted, the first one may stay, and no more. One that was found to be poison, and could not be dealt with, stays so.
func (p *poisonCheck) unmark(ctx context.Context, failed error) {
	if p.mark == nil || p.verdict != nil || failed == nil && p.mark.Batched {
		return
	}
	if err := intake.Unmark(ctx, p.base, *p.mark); err != nil {
		p.base.Logger.WarnContext(ctx, "crash marker deletion failed", "event", logevent.CrashMarkerDeleteFailed,
			"instance", p.instanceID, "error", err)
	}
}

// keep copies the records of the messages of a turn that is not run to the dead letters, before history takes their inputs: the
// other way round a crash would leave none for people to see.
func (p *poisonCheck) keep(ctx context.Context, messages []provider.InboxMessage, why *history.Failure) error {
	if p.copied {
		return nil
	}
	if err := keepMessages(ctx, p.base, messages, why); err != nil {
		return fmt.Errorf("dispatch: instance %q: move poison message to the dead-letter queue: %w", p.instanceID, err)
	}
	p.copied = true
	return nil
}

func keepMessages(ctx context.Context, b *intake.Base, messages []provider.InboxMessage, why *history.Failure) error {
	for i := range messages {
		u := provider.Unreadable{Record: messages[i].Record, Err: intake.ReasonFor(why)}
		if err := b.Provider.DeadLetter(ctx, provider.QueueInbox, u); err != nil {
			return err
		}
	}
	return nil
}

// isBlockedAsPoison reports whether a history is blocked so in this build, be it the last of several that have tried.
func (o *Orchestrator) isBlockedAsPoison(x *history.Summary) bool {
	why := x.Blocked.Diagnoses[o.options.BuildID]
	return x.Blocked.Active && why != nil && why.Type == history.TypePoison
}

// giveUp deals with messages that were delivered too often to an instance whose history cannot be read: no turn can ever take
// them. The instance is shown as blocked, with what is wrong, and they go to the dead letters; else failed comes back. What comes to one that is
// shown so already, in this build, goes there at once: to try each anew would keep a busy one's group at work for nothing.
func (o *Orchestrator) giveUp(ctx context.Context, s *session, failed error) error {
	if !errors.Is(failed, provider.ErrCorrupt) || s.backlog.deliveries() <= o.options.MaxCrashes && !o.isBlockedAsCorrupt(ctx, s) {
		return failed
	}
	if err := o.blockCorrupt(ctx, s, failed); err != nil {
		o.options.Logger.ErrorContext(ctx, "blocking an instance with an unreadable history failed",
			"event", logevent.InstanceBlockFailed, "instance", s.item.InstanceID, "error", err)
		return failed
	}
	o.options.Logger.ErrorContext(ctx, "history unreadable, blocking the instance", "event", logevent.HistoryUnreadable,
		"instance", s.item.InstanceID, "messages", len(s.backlog.unacknowledged()), "error", failed)
	s.backlog.acknowledgeAll()
	return nil
}

// isBlockedAsCorrupt reports whether the instance that the messages are for is shown as blocked so, in this build.
func (o *Orchestrator) isBlockedAsCorrupt(ctx context.Context, s *session) bool {
	in, err := o.provider.ReadInstance(ctx, s.item.InstanceID)
	return err == nil && in.Status == provider.StatusBlocked && in.BlockedBy == o.options.BuildID && s.backlog.deliveries() > 0 && s.backlog.leadsTo(in.ExecutionID) &&
		in.Diagnosis != nil && in.Diagnosis.Type == history.TypeCorrupt
}

func (o *Orchestrator) blockCorrupt(ctx context.Context, s *session, failed error) error {
	why := &history.Failure{Type: history.TypeCorrupt, Message: failed.Error()}
	in, err := o.provider.ReadInstance(ctx, s.item.InstanceID)
	if err == nil && s.backlog.leadsTo(in.ExecutionID) {
		err = o.provider.BlockInstance(ctx, in.InstanceID, in.ExecutionID, o.options.BuildID, why)
	}
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	return keepMessages(ctx, &o.base, s.backlog.unacknowledged(), why)
}

// leadsTo reports whether the message that leads to the turn is for an execution, or for whichever is the current one. Another
// execution's history says nothing of the instance.
func (b *backlog) leadsTo(executionID string) bool {
	x := b.leads().ExecutionID
	return x == "" || x == executionID
}
