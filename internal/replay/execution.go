package replay

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/coroutine"
	"github.com/perdure/perdure/internal/replay/identity"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/loading"
	"github.com/perdure/perdure/internal/replay/mailbox"
	"github.com/perdure/perdure/internal/replay/tasks"
	"github.com/perdure/perdure/internal/replay/updates"
)

// execution connects the parts of an execution. It belongs to the goroutine that runs the turn or unwinds it. Other
// goroutines may use only the gate of the scheduler and the call count of the payloads. Each part changes only itself.
type execution struct {
	orchestration Orchestration
	options       executionOptions

	lifecycle lifecycle
	journal   journal.Journal
	scheduler tasks.Scheduler
	tasks     tasks.Set
	scopes    tasks.Scopes
	mail      *mailbox.Mailbox // nil until it is needed
	payloads  loading.Loader
	parked    *parkedInputs // nil until an input is parked
	continued *Continuation // the state for the next execution, once this turn has continued as new

	queries  queryHandlers    // nil until the code sets one
	updates  *updates.Updates // nil until the code sets a handler, or an update arrives
	status   json.RawMessage  // the last custom status
	logger   *slog.Logger     // nil until the code uses it
	identity identity.Identity
}

// executionOptions are the parts of Options that an execution uses.
type executionOptions struct {
	history.ExecutionRef

	Logger                  *slog.Logger
	WaitEnds, LargePayloads bool
}

func newExecution(o Orchestration, opts *Options) *execution {
	x := &execution{orchestration: o, options: executionOptions{
		ExecutionRef: history.ExecutionRef{InstanceID: opts.InstanceID, ExecutionID: opts.ExecutionID},
		Logger:       opts.Logger, WaitEnds: opts.WaitEnds, LargePayloads: opts.LargePayloads,
	}}
	ref := &x.options.ExecutionRef
	x.identity = identity.Of(*ref)
	x.journal.Init(&journal.Options{ExecutionRef: ref, BuildID: opts.BuildID}, &x.payloads)
	x.scheduler.Init(&coroutine.Options{
		ExecutionRef: ref, Mark: fmt.Sprintf("%s %p", opts.ExecutionID, x), Failed: x.fail,
		Logger: opts.Logger, Faults: opts.Faults,
	})
	x.payloads.Init(&loading.Options{
		ExecutionRef: ref, SegmentOf: opts.SegmentOf, Fetch: opts.Fetch, Decoder: opts.Decoder,
	})
	taskOptions := &tasks.Options{ExecutionRef: ref, ExactRetries: opts.ExactRetries}
	x.tasks.Init(taskOptions, &x.scheduler, &x.scopes, &x.journal, &x.payloads)
	return x
}

// mailbox returns the external events of the execution.
func (x *execution) mailbox() *mailbox.Mailbox {
	if x.mail == nil {
		x.mail = mailbox.New(&x.tasks, &x.payloads, x.options.WaitEnds)
	}
	return x.mail
}

// start starts the body on its coroutine.
func (x *execution) start() {
	input := x.lifecycle.start()
	x.scheduler.Spawn(func() {
		if x.lifecycle.encodedFor != "" {
			input = x.decodeInput(input)
		}
		x.end(x.orchestration.Body(&Context{Unscoped: Unscoped{Info{x}}, scope: x.scopes.Root()}, input))
	})
}

// decodeInput decodes the input of the body, on its coroutine.
func (x *execution) decodeInput(encoded json.RawMessage) json.RawMessage {
	p := history.Payload(encoded)
	of := history.EventPayload{Payload: &p, Kind: history.PayloadOrchestrationInput, Name: x.lifecycle.encodedFor}
	doc, err := x.payloads.Decode(of, startTimer)
	if err != nil {
		x.scheduler.Fail(err)
	}
	return doc
}

// fail ends the orchestration, because its code did not return.
func (x *execution) fail(f *history.Failure) {
	x.end(Ending{Kind: history.OrchestrationFailed, Error: f})
}

// decide records a decision of the code. It does not return if the decision does not match the history.
func (x *execution) decide(d journal.Decision) (ev *history.Event, added bool) {
	ev, added, err := x.journal.Decide(&d)
	if err != nil {
		x.scheduler.Fail(err)
	}
	return ev, added
}

// finish ends a turn or a replay, and returns its result. Code that calls Goexit also ends the goroutine of the turn,
// so finish runs in a deferred call.
func (x *execution) finish() result {
	replayed := x.journal.Cursor.Replaying()
	if x.lifecycle.hasEnded() && !replayed {
		x.scheduler.Yield()
	}
	x.scheduler.Gate().EndTurn() // before Err, so that a later call of a foreign goroutine finds no running turn

	if replayed && x.lifecycle.hasEnded() && !x.scheduler.IsVoid() && !x.journal.Cursor.Done() {
		x.scheduler.Void(x.journal.Cursor.Divergence(x.idle()))
	}
	if !x.scheduler.IsVoid() && !x.lifecycle.hasEnded() {
		x.mail.ReferenceLargeData()
		x.updates.ReferenceLargeData()
	}
	if !replayed {
		x.payloads.DropParked()
	}

	r := result{
		ended: x.lifecycle.hasEnded(), lastID: x.journal.Cursor.LastID(), bytes: x.bytes(), err: x.scheduler.Err(),
	}
	r.events, r.consumed = x.journal.Draft.Release()
	r.continued, x.continued = x.continued, nil
	r.repeated, r.callers, r.rejectedCallers = x.updates.EndTurn()
	r.waits = x.mail.EndTurn(x.journal.Draft.Now())
	x.journal.Cursor.Finish()
	x.parked.endTurn()
	x.tasks.Arrivals.EndTurn()
	return r
}

// idle describes what the code waits for.
func (x *execution) idle() string {
	if x.lifecycle.hasEnded() {
		return "nothing and has ended"
	}
	awaited := x.scheduler.Awaited()
	if len(awaited) == 0 {
		return "nothing"
	}
	return "nothing and waits for " + tasks.Describe(awaited)
}

// The approximate memory of an instance and a coroutine, measured with 10,000 suspended instances.
const (
	instanceBytes  = 2 << 10
	coroutineBytes = 8 << 10
)

// bytes returns the approximate memory of the execution.
func (x *execution) bytes() int {
	return instanceBytes + len(x.lifecycle.input) + len(x.status) + x.payloads.ParkedBytes() +
		x.tasks.Bytes() + x.mail.Bytes() + x.updates.Bytes() + x.scheduler.Suspended()*coroutineBytes
}
