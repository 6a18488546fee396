package turns

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/dispatch/internal/attempts"
	"github.com/perdure/perdure/dispatch/internal/blocked"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/inline"
	"github.com/perdure/perdure/dispatch/internal/mailbox"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// instance is the instance of a session: its messages, and its execution as last read by the session.
type instance struct {
	o        *Orchestrator
	item     *provider.OrchestrationItem
	queue    messages.Queue
	attempts attempts.Ledger
	poison   poison.Check
	// x is the loaded execution, or nil.
	x *execution.Execution
	// inline runs the inline activities of the execution.
	inline inline.Runner
	chain  chain
	// dispatched is the head up to which all outputs are known to be sent.
	dispatched provider.Head
	// absent is set if a read with strong consistency has found no instance. idInUse is set if the instance ID is in
	// use nevertheless, for example during a deletion.
	absent, idInUse bool
	// statusPending is set while the instance's status update is deferred to a later turn.
	statusPending bool
	// maxParked limits the parked inputs that a turn takes, after a turn was too large for a commit. 0 means no limit.
	maxParked int
	// executions counts the executions that the session has begun by continue-as-new.
	executions int
	// lastExecution is the ID of the last discarded execution, for the log.
	lastExecution string
}

// taken returns the messages of the next turn. It stops at a message that the code does not receive, or that pauses the
// instance.
func (i *instance) taken() []provider.InboxMessage { return i.queue.Next(i.x.EndsTurn) }

// isDone reports whether nothing is left to do. There are no messages to consume and no refused outputs to record, no
// turn is due, and no inline activities run.
func (i *instance) isDone() bool {
	return i.queue.First() == nil && len(i.queue.Refused()) == 0 && (i.x == nil || !i.x.Due()) && !i.inline.Any()
}

// isDispatched reports whether all outputs up to the head are known to be sent.
func (i *instance) isDispatched() bool { return i.x != nil && i.x.Head() == i.dispatched }

// setFound records that there is an instance, which may already have consumed the next messages.
func (i *instance) setFound() { i.absent, i.dispatched = false, provider.Head{} }

// mustStart reports whether a message requests a start and was not delivered before. A turn has probably consumed a
// redelivered message, as the head shows (R4).
func (i *instance) mustStart(m *provider.InboxMessage) bool {
	switch {
	case m == nil || m.Kind != provider.MessageStart:
		return false
	case m.Redrive != nil && !i.absent && !i.isDispatched():
		return false
	case i.x == nil:
		return i.absent || m.Record.ReceiveCount <= 1
	default:
		return !i.x.Head().Watermark.Covers(m.Position)
	}
}

// hadTurnBy reports whether the loaded execution has had a turn that has consumed a message. A start message can be
// redelivered after the turn that it has caused.
func (i *instance) hadTurnBy(m *provider.InboxMessage) bool {
	head, read := i.x.Head(), i.x.Read()
	return (head.Segment > 0 || read != nil && read.Previous != "") && head.Watermark.Covers(m.Position)
}

func (i *instance) receiver() mailbox.Receiver {
	return mailbox.Receiver{InstanceID: i.item.InstanceID, Execution: i.x, Absent: i.absent, IDInUse: i.idInUse}
}

func (i *instance) read(ctx context.Context, c provider.Consistency) error {
	read, err := i.o.Provider.ReadOrchestration(ctx, i.item, c)
	if err != nil {
		return err
	}
	return i.loadFrom(ctx, read)
}

// loadFrom loads the execution of a history. Its code does not run if the instance is paused or poison, or if history
// shows that this build cannot continue it.
func (i *instance) loadFrom(ctx context.Context, read *provider.Orchestration) error {
	state := read.State(history.TrackTimers)
	obstacle := i.o.loader.Obstacle(state)
	if obstacle == nil {
		poisoned := poison.IsBlocked(i.o.loader.BuildID, &state.Summary)
		obstacle = i.poison.BeforeCode(ctx, read.Head.ExecutionID, poisoned, &i.queue)
		if _, is := errors.AsType[*poison.Error](obstacle); obstacle != nil && !is {
			return obstacle
		}
	}
	x, err := i.o.loader.Load(ctx, read, state, obstacle)
	i.x = x
	return err
}

// reset marks all unacknowledged messages as unconsumed.
func (i *instance) reset() {
	i.queue.Reset()
	i.setFound()
	i.attempts.Reset()
}

// unload ends the coroutines of the execution and its inline activities.
func (i *instance) unload() {
	i.inline.Drop()
	if i.x != nil {
		i.lastExecution = i.x.Head().ExecutionID
		i.x.Close()
		i.x = nil
	}
}

// keepWarm puts the execution into the cache. It drops the code if the code cannot continue in this build.
func (i *instance) keepWarm() {
	x := i.x
	if x == nil || x.Ended() {
		return
	}
	if !x.Code.Loaded() && !blocked.IsKnown(x.Code.Broken()) && !x.Paused() {
		return
	}
	x.PrepareForCache()
	i.o.cache.Put(i.item.InstanceID, x)
}

// passOn sends a wake, so that another invocation runs the turn that is due.
func (i *instance) passOn(ctx context.Context) error {
	wake := provider.Message{
		Kind: provider.MessageWake, InstanceID: i.item.InstanceID, ExecutionID: i.x.Head().ExecutionID,
	}
	if err := i.o.Provider.EnqueueForOrchestrator(ctx, wake); err != nil {
		return err
	}
	i.x.ClearDue()
	return nil
}

// executionID returns the ID of the current or last execution, for the log. It is empty if there was none.
func (i *instance) executionID() string {
	if i.x != nil {
		return i.x.Head().ExecutionID
	}
	return i.lastExecution
}

// termination returns the first waiting message that terminates the instance, or nil.
func (i *instance) termination() *provider.InboxMessage {
	waiting := i.queue.Waiting()
	at := slices.IndexFunc(waiting, func(m provider.InboxMessage) bool { return m.Kind == provider.MessageTerminate })
	if at < 0 {
		return nil
	}
	return &waiting[at]
}
