package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/coroutine"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/payloads"
	"github.com/perdure/perdure/internal/replay/stack"
	"github.com/perdure/perdure/internal/replay/tasks"
)

// mostUpdates is how many handlers of updates an execution runs at a time: each is a coroutine, and each that its end leaves is an event of its
// last segment.
const mostUpdates = 1000

// mostReceived is how many updates an execution keeps until its code begins: the turn in which it does takes them all, with what their handlers return.
const mostReceived = 10

// UpdateHandler handles the updates with a name.
type UpdateHandler struct {
	// Judge returns why an update with this input is rejected, or nil to accept it. It must only read. Only turns call
	// it: a replay reads its result from the history.
	Judge func(input json.RawMessage) *UpdateRefusal
	// Run handles the update as code of the orchestration: on its own coroutine, which may decide and wait.
	Run func(input json.RawMessage) (json.RawMessage, *history.Failure)
	// OneAtATime makes the handler run only after all earlier accepted updates of such handlers have ended. If the
	// execution continues as new, the next execution takes the updates that still wait.
	OneAtATime bool
}

// UpdateRefusal is the reason why an update is rejected. Reason is one of the history.Rejected constants.
type UpdateRefusal struct {
	Reason  string
	Failure *history.Failure
}

// updates are the handlers that the code of an execution has set, and the updates that they have not come to the end of. Most executions have none: a
// nil updates is empty.
type updates struct {
	handlers map[string]UpdateHandler
	running  map[int64]*update           // by the id of UpdateAccepted
	received []*update                   // before the code began, in their order
	queue    []*update                   // accepted, for handlers that run one at a time, in their order
	busy     bool                        // such a handler runs, or is about to
	awaiting map[string][]history.Parent // the orchestrations that wait for answers, by the ids of updates that are not over
	waiting  int                         // callerBytes of these
	none     *Task                       // settles when nothing runs; nil while no coroutine waits for that
	settled  map[string]bool             // by the turn under way, by the ids of updates
	repeated map[string]string           // names, by the ids of updates that are over and have come again in the turn under way
	again    map[string][]history.Parent // the orchestrations that have sent these
	// turnedAway are the orchestrations that would wait for an update, in the turn under way, where too many do.
	turnedAway []history.Parent
}

// update is one that is not over.
type update struct {
	id             int64 // of the event that has it
	name, updateID string
	requestedBy    string
	data           history.Payload  // of one that waits for the code to begin, or for its turn
	lies           int64            // the event in which data does
	on             *tasks.Coroutine // that its handler runs on
}

// refer replaces the data of an update that waits by a reference to where it lies, unless a copy takes no more. The event may be of the turn under way: nothing
// can be fetched from there before that is committed, so this is for the end of a turn, and for what the next execution gets.
func (u *update) refer(l *payloads.Loader) {
	if len(u.data) > payloads.CopyLimit {
		u.data = l.Refer(history.DataLocation{EventID: u.lies}, u.data)
	}
}

// changing returns the updates of an execution, to be changed.
func changing(x *execution) *updates {
	if x.updates == nil {
		x.updates = &updates{handlers: map[string]UpdateHandler{}, running: map[int64]*update{}}
	}
	return x.updates
}

// SetUpdateHandler registers the handler for updates with a name, from now on. The history does not record the call.
func SetUpdateHandler(c *Context, name string, handler UpdateHandler) {
	c.x.scheduler.Enter()
	changing(c.x).handlers[name] = handler
}

// AwaitUpdates waits until no update handler runs. If the scope is cancelled before that, it returns the scope's
// cancellation. own is true if the caller is itself a handler, which would wait for its own end.
func AwaitUpdates(c *Context) (cancelled *Cancellation, own bool) {
	c.x.scheduler.Enter()
	for !c.x.updates.isIdle() {
		u := c.x.updates
		if u.runsOn(c.x.scheduler.Current()) {
			return nil, true
		}
		if u.none == nil {
			u.none = c.x.tasks.NewSignal()
		}
		if c.x.scheduler.AwaitOne(c.scope, u.none) < 0 {
			return c.scope.Cancellation(), false
		}
	}
	return c.scope.Cancellation(), false
}

// isIdle reports whether no handler runs.
func (u *updates) isIdle() bool { return u == nil || len(u.running) == 0 && len(u.queue) == 0 }

// runsOn reports whether a coroutine is that of a handler.
func (u *updates) runsOn(c *tasks.Coroutine) bool {
	for _, r := range u.running {
		if r.on == c {
			return true
		}
	}
	return false
}

// receivedAs returns the update that an event had history receive before the code began; nil where there is none that waits.
func (u *updates) receivedAs(id int64) *update {
	if u == nil {
		return nil
	}
	i := slices.IndexFunc(u.received, func(r *update) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return u.received[i]
}

// hasReceived reports whether an update waits for the code to begin.
func (u *updates) hasReceived(updateID string) bool {
	return u != nil && slices.ContainsFunc(u.received, func(r *update) bool { return r.updateID == updateID })
}

// isOpen reports whether an update is known that has not come to its end.
func (u *updates) isOpen(updateID string) bool {
	if u == nil {
		return false
	}
	for _, r := range u.running {
		if r.updateID == updateID {
			return true
		}
	}
	return u.hasReceived(updateID) || slices.ContainsFunc(u.queue, func(q *update) bool { return q.updateID == updateID })
}

// isNewUpdate reports whether an event about an update applies: none of its id has come before, or it is about one that was received.
func isNewUpdate(x *execution, ev *history.Event) bool {
	if ev.SourceEventID != 0 {
		return x.updates.receivedAs(ev.SourceEventID) != nil
	}
	return isNewID(x, ev.EventID)
}

// isNewID reports whether no update of an id has come before.
func isNewID(x *execution, updateID string) bool {
	return !x.mail.Knows(history.UpdateIDPrefix+updateID) && !x.updates.hasReceived(updateID)
}

// noteRepeated notes an input that does not apply, if it is an update that is over: who sends it again may be without an answer.
func noteRepeated(x *execution, ev *history.Event) {
	switch {
	case ev.Kind != history.UpdateAccepted && ev.Kind != history.UpdateAwaited:
		return
	case x.updates.isOpen(ev.EventID):
		noteTurnedAway(x, ev)
		return
	}
	u := changing(x)
	if u.settled[ev.EventID] {
		return // its answer is to come, with the commit of this turn
	}
	if u.repeated == nil {
		u.repeated = map[string]string{}
	}
	u.repeated[ev.EventID] = ev.Name
	if ev.Kind == history.UpdateAwaited {
		if u.again == nil {
			u.again = map[string][]history.Parent{}
		}
		u.again[ev.EventID] = append(u.again[ev.EventID], *ev.Parent)
	}
}

// noteSettled notes that the turn under way answers an update.
func noteSettled(x *execution, updateID string) {
	u := x.updates
	if x.journal.Cursor.Replaying() {
		return
	}
	if u.settled == nil {
		u.settled = map[string]bool{}
	}
	u.settled[updateID] = true
}

// endTurn forgets what is about one turn, and returns which updates came again, and who may not wait.
func (u *updates) endTurn() (repeated map[string]string, again map[string][]history.Parent, turnedAway []history.Parent) {
	if u == nil {
		return nil, nil, nil
	}
	repeated, again, turnedAway = u.repeated, u.again, u.turnedAway
	u.repeated, u.again, u.turnedAway = nil, nil, nil
	u.settled = nil
	return repeated, again, turnedAway
}

// judge is what history records of an update that has come: that it is received, accepted or rejected. It is nil where the turn was given up meanwhile.
func judge(x *execution, ev *history.Event) (*history.Event, error) {
	e := *ev
	if !x.life.hasBegun() {
		if u := x.updates; u != nil && len(u.received) >= mostReceived {
			return rejected(x, ev, tooMany("%d updates already wait for the code to start: send the update again later",
				len(u.received))), nil
		}
		e.Kind = history.UpdateReceived
		return &e, nil
	}

	data, _ := dataOfUpdate(x, ev)
	doc, err := openUpdate(x, ev, data)
	if err != nil {
		return nil, err
	}
	refusal := refusalOf(x, ev.Name, doc)
	if !x.scheduler.Gate().Is(coroutine.Live) {
		return nil, nil //nolint:nilnil // there is nothing to record any more
	}
	if refusal == nil {
		return &e, nil
	}
	return rejected(x, ev, refusal), nil
}

func rejected(x *execution, ev *history.Event, refusal *UpdateRefusal) *history.Event {
	return &history.Event{
		Kind: history.UpdateRejected, Name: ev.Name, EventID: ev.EventID, SourceEventID: ev.SourceEventID, Reason: refusal.Reason, Error: refusal.Failure,
		Callers: slices.Clone(x.updates.callersOf(ev.EventID)),
	}
}

func tooMany(format string, n int) *UpdateRefusal {
	return &UpdateRefusal{history.RejectedLimit, &history.Failure{Type: history.TypeError, Message: fmt.Sprintf(format, n)}}
}

// dataOfUpdate is the input of an update, and the event in which it lies: its own, or that by which it was received.
func dataOfUpdate(x *execution, ev *history.Event) (data history.Payload, lies int64) {
	if r := x.updates.receivedAs(ev.SourceEventID); r != nil {
		return r.data, r.lies
	}
	return ev.Data, ev.ID
}

// openUpdate returns the document of an update's input, wherever that lies and however it is sealed. The validator gets it, and the handler.
func openUpdate(x *execution, ev *history.Event, data history.Payload) (doc json.RawMessage, err error) {
	doc, sealed, err := x.payloads.Find(data)
	if err != nil || !sealed {
		return doc, err
	}
	p := history.Payload(doc)
	return x.payloads.Decode(history.EventPayload{Payload: &p, Kind: history.PayloadUpdateInput, Name: ev.Name}, ev.ID)
}

// mostKnownUpdates bounds the names in the failure of an update that no handler is set for.
const mostKnownUpdates = 100

// refusalOf is why an update is rejected; nil accepts it.
func refusalOf(x *execution, name string, input json.RawMessage) *UpdateRefusal {
	var handler UpdateHandler
	set, running := false, 0
	if x.updates != nil {
		handler, set = x.updates.handlers[name]
		running = len(x.updates.running) + len(x.updates.queue)
	}
	switch {
	case !set:
		return &UpdateRefusal{history.RejectedNoHandler, &history.Failure{Type: history.TypeNotFound, Message: unknownUpdate(x, name)}}
	case running >= mostUpdates:
		return tooMany("%d updates are running, which is the limit of an execution: send the update again later",
			running)
	default:
		return askValidator(x, handler, input)
	}
}

func unknownUpdate(x *execution, name string) string {
	var known []string
	if x.updates != nil {
		known = slices.Sorted(maps.Keys(x.updates.handlers))
	}
	more := ""
	if n := len(known) - mostKnownUpdates; n > 0 {
		known = known[:mostKnownUpdates]
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("update %q has no handler; handlers exist for %q%s",
		history.TruncateMessage(name, history.MaxRequesterBytes), known, more)
}

// askValidator runs a validator, which may end its goroutine, and must not decide: so it has one of its own, in the mode of queries. One that does not come
// back is the turn's (BlockedOutsideError).
func askValidator(x *execution, handler UpdateHandler, input json.RawMessage) (refusal *UpdateRefusal) {
	gate := x.scheduler.Gate()
	takeBack := x.identity.MarkDraws()
	gate.StartQuery()
	answers := make(chan *UpdateRefusal, 1)
	go func() {
		x.scheduler.Label()
		var r *UpdateRefusal
		returned := false
		defer func() {
			if !returned {
				r = &UpdateRefusal{history.RejectedByValidator, endedBy(recover())}
			}
			answers <- r
		}()
		r = handler.Judge(input)
		returned = true
	}()

	refusal = <-answers
	takeBack()
	gate.EndQuery()
	if misuse := gate.TakeMisuse(); misuse != nil {
		refusal = &UpdateRefusal{history.RejectedNotReadOnly, &history.Failure{
			Type:         history.TypeError,
			Message:      "the validator must only read, but it made a call that decides or waits at " + stack.Where(misuse.Stack),
			NonRetryable: true,
		}}
	}
	return refusal
}

// acceptUpdate takes an event about an update that applies.
func acceptUpdate(x *execution, ev *history.Event) error {
	if ev.Kind != history.UpdateReceived { // the execution behind this one may have to take what is received
		x.mailbox().Remember(history.UpdateIDPrefix + ev.EventID)
	}
	data, lies := dataOfUpdate(x, ev)
	u := changing(x)
	u.received = slices.DeleteFunc(u.received, func(r *update) bool { return r.id == ev.SourceEventID })

	switch ev.Kind {
	case history.UpdateReceived:
		u.received = append(u.received, waitingUpdate(ev, data, lies))
		return nil
	case history.UpdateRejected:
		settleUpdate(x, ev.EventID)
		return nil
	default:
		return startUpdate(x, ev, data, lies)
	}
}

// waitingUpdate is an update that waits, of the event that has it.
func waitingUpdate(ev *history.Event, data history.Payload, lies int64) *update {
	return &update{id: ev.ID, name: ev.Name, updateID: ev.EventID, requestedBy: ev.RequestedBy, data: data, lies: lies}
}

// startUpdate has the handler of an accepted update run, when the scheduler comes to it.
func startUpdate(x *execution, ev *history.Event, data history.Payload, lies int64) error {
	handler, set := x.updates.handlers[ev.Name]
	if !set {
		return x.journal.Nondeterminism(ev.ID, journal.Describe(ev), unknownUpdate(x, ev.Name))
	}
	if handler.OneAtATime {
		enqueue(x, waitingUpdate(ev, data, lies))
		return nil
	}
	doc, err := openUpdate(x, ev, data)
	if err != nil {
		return err
	}

	u := &update{id: ev.ID, name: ev.Name, updateID: ev.EventID}
	x.updates.running[ev.ID] = u
	x.scheduler.Spawn(func() {
		u.on = x.scheduler.Current()
		x.protect(func() { completeUpdate(x, u, handler, doc) })
	})
	return nil
}

// completeUpdate runs a handler, and decides that it has returned.
func completeUpdate(x *execution, u *update, handler UpdateHandler, input json.RawMessage) {
	result, failed := handler.Run(input)

	x.scheduler.Enter()
	ev, added := x.decide(journal.Decision{Kind: history.UpdateCompleted, Name: u.name, Source: u.id})
	if added {
		ev.EventID = u.updateID
		ev.Result = inline(result)
		ev.Error = failed
		ev.Callers = x.updates.callersOf(u.updateID)
	}
	delete(x.updates.running, u.id)
	settleUpdate(x, u.updateID)
	if handler.OneAtATime {
		takeNext(x)
	}
	tellIdle(x)
}

// tellIdle wakes who waits until no handler runs, if none does.
func tellIdle(x *execution) {
	if none := x.updates.none; none != nil && x.updates.isIdle() {
		x.updates.none = nil
		x.tasks.Signal(none)
	}
}

// takeReceived takes what was received before the code began: it has come to its first wait.
func takeReceived(x *execution, t *Turn) {
	if x.updates == nil {
		return
	}
	for _, r := range slices.Clone(x.updates.received) {
		x.apply(t, &history.Event{Kind: history.UpdateAccepted, Name: r.name, EventID: r.updateID, SourceEventID: r.id, RequestedBy: r.requestedBy})
	}
}

// notTaken returns what waits for its turn, and what was received before the code began, and what it continues as new without having waited for: no
// message will bring it again.
func (u *updates) notTaken(l *payloads.Loader) (inputs []history.Event) {
	if u == nil {
		return nil
	}
	awaited := func(name, updateID string) {
		for _, c := range u.awaiting[updateID] {
			inputs = append(inputs, history.Event{Kind: history.UpdateAwaited, Name: name, EventID: updateID, Parent: &c})
		}
	}
	with := map[string]bool{}
	for _, r := range append(slices.Clone(u.queue), u.received...) {
		with[r.updateID] = true
		awaited(r.name, r.updateID)
		r.refer(l)
		inputs = append(inputs, history.Event{Kind: history.UpdateAccepted, Name: r.name, EventID: r.updateID, Data: r.data, RequestedBy: r.requestedBy})
	}
	for _, id := range slices.Sorted(maps.Keys(u.awaiting)) {
		if !with[id] { // the update is parked behind that, and comes next
			awaited("", id)
		}
	}
	return inputs
}

// releaseAll decides, before the end of an execution, what it leaves: it cancels all that is outstanding, and gives up the handlers that have not returned.
func releaseAll(x *execution, end history.Kind) error {
	x.mail.EndWaits(end)
	if err := x.scopes.CancelAll(end); err != nil || x.updates.isIdle() {
		return err
	}
	left := maps.Clone(x.updates.running)
	if end != history.OrchestrationContinuedAsNew { // else the next execution has what waits for its turn
		for _, q := range x.updates.queue {
			left[q.id] = q
		}
		x.updates.queue = nil
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		u := left[id]
		ev, added, err := x.journal.Decide(&journal.Decision{Kind: history.UpdateCompleted, Name: u.name, Source: id, Reason: history.TerminalReason(end)})
		if err != nil {
			return err
		}
		if added {
			ev.EventID = u.updateID
			ev.Callers = x.updates.callersOf(u.updateID)
		}
		settleUpdate(x, u.updateID)
	}
	clear(x.updates.running)
	return nil
}

// bytes is roughly what the updates take in memory, without the coroutines of their handlers.
func (u *updates) bytes() (n int) {
	if u == nil {
		return 0
	}
	const each = 192
	for _, r := range u.received {
		n += each + len(r.data)
	}
	for _, q := range u.queue {
		n += each + len(q.data)
	}
	return n + each*(len(u.handlers)+len(u.running))
}
