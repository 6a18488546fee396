package dispatch_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// auditor reads all histories after a simulation, including the histories of purged instances. It compares the results
// that callers received with the work of accounts and ledgers (R31).
type auditor struct {
	w *monitor

	mu sync.Mutex
	// seen contains the current histories of instances that may be purged, by execution.
	seen map[string][]history.Event
	// begun is the order in which executions started. Incarnations may follow each other at the same time.
	begun map[string]int
	// mayEnd contains the instances that may be purged, or that may end before they have responded to all calls.
	mayEnd map[string]bool
	// displaced contains the instances and updates with a dead letter. A dead letter and the outputs of its turn arrive
	// later (R24).
	displaced map[string]bool
	errs      []error

	executions  map[string]auditedExecution
	order       []string // the executions, ordered within each instance
	sent        []sentCall
	clientCalls []clientCall
	taken       map[string]*calleeWork // by instance
}

// auditedExecution is the history of an execution.
type auditedExecution struct {
	instance, id string
	events       []history.Event
}

// sentCall is an UpdateSent event and its response.
type sentCall struct {
	from         auditedExecution
	event        *history.Event
	id           string
	named        bool
	updateResult *history.Event
}

// clientCall is a call of a client and its result.
type clientCall struct {
	instance, id string
	result       json.RawMessage
	err          error
}

// calleeWork contains the work of an instance in all incarnations.
type calleeWork struct {
	incarnations []*incarnation
}

// incarnation is an instance from its start to its end or purge, with its accepted updates by ID and in order.
type incarnation struct {
	startID  string
	order    []string
	updates  map[string]*acceptedUpdate
	book     book
	rejected map[string]bool
	done     int // at least this many updates of order have ended
}

type acceptedUpdate struct {
	at      int
	op      string
	posting posting
	ends    []*history.Event
}

func newAuditor(w *monitor) *auditor {
	return &auditor{
		w: w, seen: map[string][]history.Event{}, begun: map[string]int{}, mayEnd: map[string]bool{},
		displaced: map[string]bool{}, executions: map[string]auditedExecution{}, taken: map[string]*calleeWork{},
	}
}

func (a *auditor) wrongf(format string, args ...any) {
	a.errs = append(a.errs, fmt.Errorf(format, args...))
}

// intercept records the history of instances that may be purged after each commit, and recovered dead letters.
func (a *auditor) intercept(c simaws.Call) {
	a.recordRedrive(c)
	for _, it := range itemsPut(c) {
		id, ofExecution := strings.CutPrefix(text(it, "pk"), "x#")
		if !ofExecution || !strings.HasPrefix(text(it, "sk"), "h#") || text(it, "stub") != "" {
			continue
		}
		a.w.mu.Lock()
		instance := a.w.instances["x#"+id]
		a.w.mu.Unlock()
		a.readNewEvents(instance, id)
	}
}

// readNewEvents reads the new events of an execution.
func (a *auditor) readNewEvents(instance, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.begun[id]; !known {
		a.begun[id] = len(a.begun)
	}
	if !a.mayEnd[instance] {
		return
	}
	after := int64(0)
	if n := len(a.seen[id]); n > 0 {
		after = a.seen[id][n-1].ID
	}
	for e, err := range a.w.h.Provider.ReadHistory(context.Background(), instance, id, after) {
		if err != nil {
			return
		}
		a.seen[id] = append(a.seen[id], e)
	}
}

func (a *auditor) recordRedrive(c simaws.Call) {
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	if !ok || *in.QueueUrl != a.w.h.Provider.Config().InboxURL {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range in.Entries {
		m, err := wire.DecodeMessage(*in.Entries[i].MessageBody)
		if err != nil || m.Redrive == nil {
			continue
		}
		a.displaced[m.InstanceID] = true
		if m.Kind == provider.MessageUpdateSent {
			a.displaced[m.EventID] = true
		}
	}
}

// check reads all histories and returns all errors.
func (a *auditor) check(ctx context.Context) error {
	a.read(ctx)
	for _, id := range a.order {
		a.follow(a.executions[id])
	}
	for _, id := range a.order {
		a.send(a.executions[id])
	}
	for i := range a.sent {
		a.verify(&a.sent[i])
	}
	for _, c := range a.clientCalls {
		a.checkClientCall(&c)
	}
	a.checkOrder()
	a.once()
	return errors.Join(a.errs...)
}

// read loads the histories in the order of the executions, except starts to which no instance item refers (R11).
func (a *auditor) read(ctx context.Context) {
	for pk, instance := range a.w.instances {
		id := strings.TrimPrefix(pk, "x#")
		x := auditedExecution{instance: instance, id: id, events: a.seen[id]}
		named := a.w.executions[id].named
		if !a.mayEnd[instance] {
			for e, err := range a.w.h.Provider.ReadHistory(ctx, instance, id, 0) {
				if err != nil && !named && errors.Is(err, provider.ErrNotFound) {
					break
				}
				if err != nil {
					a.wrongf("the history of %s of %q: %w", id, instance, err)
					break
				}
				x.events = append(x.events, e)
			}
		}
		if len(x.events) > 0 && (named || x.events[0].Number > 1) {
			a.executions[id] = x
		}
	}
	a.order = slices.SortedFunc(maps.Keys(a.executions), func(one, two string) int {
		x, y := a.executions[one], a.executions[two]
		return cmp.Or(cmp.Compare(x.instance, y.instance), x.events[0].Time.Compare(y.events[0].Time),
			cmp.Compare(x.events[0].Number, y.events[0].Number), cmp.Compare(a.begun[one], a.begun[two]))
	})
}

// follow records the updates that an execution processed.
func (a *auditor) follow(x auditedExecution) {
	all := a.taken[x.instance]
	if all == nil {
		all = &calleeWork{}
		a.taken[x.instance] = all
	}
	start := &x.events[0]
	i := slices.IndexFunc(all.incarnations, func(l *incarnation) bool { return l.startID == start.StartID })
	if i < 0 {
		i, all.incarnations = len(all.incarnations), append(all.incarnations, &incarnation{
			startID: start.StartID, updates: map[string]*acceptedUpdate{}, rejected: map[string]bool{},
		})
	}
	l := all.incarnations[i]
	if start.Number > 1 {
		a.checkState(x, l, "begins with", start.Input)
	}
	received := map[int64]*history.Event{}
	for n := range x.events {
		switch e := &x.events[n]; e.Kind {
		case history.UpdateReceived:
			received[e.ID] = e
		case history.UpdateAccepted:
			data := e.Data
			if r := received[e.SourceEventID]; r != nil {
				data = r.Data
			}
			if l.updates[e.EventID] == nil { // otherwise it was carried over
				u := &acceptedUpdate{at: len(l.order), op: e.Name}
				_ = json.Unmarshal(data, &u.posting)
				l.updates[e.EventID], l.order = u, append(l.order, e.EventID)
			}
		case history.UpdateRejected:
			l.rejected[e.EventID] = true
		case history.UpdateCompleted:
			a.complete(x, l, e)
		case history.ActivityScheduled:
			a.works(x, l, e)
		case history.OrchestrationCompleted:
			a.checkState(x, l, "ends with", e.Output)
		}
	}
}

// checkState checks that a state in history is the result of all operations so far.
func (a *auditor) checkState(x auditedExecution, l *incarnation, what string, doc history.Payload) {
	var got book
	switch name := x.events[0].Name; name {
	case perdure.EntityOrchestrationName("account"):
		_ = json.Unmarshal(doc, &got)
	case "ledger":
		var in ledger
		if what == "ends with" {
			_ = json.Unmarshal(doc, &in.Book)
		} else {
			_ = json.Unmarshal(doc, &in)
		}
		got = in.Book
	default:
		return
	}
	if !got.equal(&l.book) {
		a.wrongf("%q: execution %s %s state %+v, want %+v", x.instance, x.id, what, got, l.book)
	}
}

// next returns the first update that has not ended.
func (l *incarnation) next() (id string, u *acceptedUpdate) {
	for ; l.done < len(l.order); l.done++ {
		if u := l.updates[l.order[l.done]]; len(u.ends) == 0 {
			return l.order[l.done], u
		}
	}
	return "", nil
}

// works checks that only the next operation in order schedules an activity.
func (a *auditor) works(x auditedExecution, l *incarnation, e *history.Event) {
	var label string
	_ = json.Unmarshal(e.Input, &label)
	if id, u := l.next(); u == nil || u.posting.Label != label {
		a.wrongf("%q: %s of %s schedules %q during the turn of %q, %+v", x.instance, e.String(), x.id, label, id, u)
	}
}

// complete records the end of an update. Updates must end in the order in which they were accepted, with the state of
// the previous operations.
func (a *auditor) complete(x auditedExecution, l *incarnation, e *history.Event) {
	u := l.updates[e.EventID]
	if u == nil {
		a.wrongf("%q: %s of %s ends update %q that was not accepted", x.instance, e.String(), x.id, e.EventID)
		return
	}
	if id, _ := l.next(); e.Reason == "" && id != e.EventID {
		a.wrongf("%q: update %q of %s ends during the turn of %q", x.instance, e.EventID, x.id, id)
	}
	u.ends = append(u.ends, e)
	switch {
	case len(u.ends) > 1:
		a.wrongf("%q: update %q ends again, with %s of %s", x.instance, e.EventID, e.String(), x.id)
	case e.Reason != "" || e.Error != nil:
	default:
		var got receipt
		_ = json.Unmarshal(e.Result, &got)
		want := receipt{u.posting.Label, l.book.Count, l.book.Sum}
		if u.op == opClose {
			l.book = book{}
		} else {
			want = l.book.post(u.posting)
		}
		if got != want {
			a.wrongf("%q: update %q of %s, operation %s: got result %+v, want %+v",
				x.instance, e.EventID, x.id, u.op, got, want)
		}
	}
}

// send collects the calls of an execution.
func (a *auditor) send(x auditedExecution) {
	by := map[int64]int{}
	for n := range x.events {
		switch e := &x.events[n]; e.Kind {
		case history.UpdateSent:
			by[e.ID] = len(a.sent)
			a.sent = append(a.sent, sentCall{
				from: x, event: e, id: cmp.Or(e.EventID, provider.StartID(x.id, e.ID)), named: e.EventID != "",
			})
		case history.UpdateAnswered:
			i, ok := by[e.SourceEventID]
			switch {
			case !ok:
				a.wrongf("%q: %s of %s responds to no call", x.instance, e.String(), x.id)
			case a.sent[i].updateResult != nil:
				a.wrongf("%q: %s of %s is a second response", x.instance, e.String(), x.id)
			default:
				a.sent[i].updateResult = e
			}
		}
	}
}

// ended returns the ends of a call in all incarnations of its receiver.
func (a *auditor) ended(s *sentCall) (ends []*history.Event, rejected, accepted bool) {
	t := a.taken[s.event.InstanceID]
	if t == nil {
		return nil, false, false
	}
	for _, l := range t.incarnations {
		rejected = rejected || l.rejected[s.id]
		if u := l.updates[s.id]; u != nil {
			accepted = true
			ends = append(ends, u.ends...)
		}
	}
	return ends, rejected, accepted
}

// verify compares the response that a caller received with the work of the receiver. It records differences.
func (a *auditor) verify(s *sentCall) {
	ends, rejected, accepted := a.ended(s)
	who := fmt.Sprintf("call %q of %q to %q", s.id, s.from.instance, s.event.InstanceID)
	if !a.mayEnd[s.event.InstanceID] && s.event.Orchestration != "" && len(ends) == 0 && !rejected {
		a.wrongf("%s has no end (accepted: %v)", who, accepted)
	}
	if s.updateResult == nil {
		return // the caller has not ended, which other checks find
	}
	is := func(what string, f func(e *history.Event) bool) {
		if !slices.ContainsFunc(ends, f) {
			a.wrongf("%s received %s, %s %v, want one of %v", who, what, s.updateResult.Result,
				s.updateResult.Error, ends)
		}
	}
	if s.updateResult.Error == nil {
		is("a result", func(e *history.Event) bool {
			return e.Reason == "" && e.Error == nil && string(e.Result) == string(s.updateResult.Result)
		})
		return
	}
	switch why := s.updateResult.Error.Type; why {
	case history.TypeUpdateFailed:
		is(why, func(e *history.Event) bool { return e.Error != nil })
	case history.TypeUpdateAborted:
		is(why, func(e *history.Event) bool { return e.Reason != "" })
	case history.TypeUpdateRejected:
		if !rejected {
			a.wrongf("%s received a rejection, but was not rejected", who)
		}
	case history.TypeNotFound, history.TypeEnded:
		if why == history.TypeNotFound && s.event.Orchestration != "" {
			a.wrongf("%s received %s although it starts the instance", who, why)
		}
		if done := slices.IndexFunc(ends, func(e *history.Event) bool {
			return e.Reason == ""
		}); done >= 0 && !s.named {
			a.wrongf("%s received %s, but was processed: %s", who, why, ends[done].String())
		}
	case history.TypeUpdatePurged:
		if !a.mayEnd[s.event.InstanceID] {
			a.wrongf("%s received %s from an instance that is never purged", who, why)
		}
	default:
		a.wrongf("%s received an unexpected failure: %+v", who, s.updateResult.Error)
	}
}

// checkClientCall compares the result that a client received with the work of the receiver.
func (a *auditor) checkClientCall(c *clientCall) {
	ends, _, _ := a.ended(&sentCall{event: &history.Event{InstanceID: c.instance}, id: c.id})
	done := func(e *history.Event) bool {
		return e.Reason == "" && e.Error == nil && string(e.Result) == string(c.result)
	}
	failed, _ := errors.AsType[*client.UpdateError](c.err)
	switch {
	case c.err == nil && !slices.ContainsFunc(ends, done):
		a.wrongf("client call %q of %q received %s, want one of %v", c.id, c.instance, c.result, ends)
	case failed != nil && failed.Code == client.UpdateFailed && !slices.ContainsFunc(ends, func(e *history.Event) bool {
		return e.Error != nil
	}):
		a.wrongf("client call %q of %q received %w, want one of %v", c.id, c.instance, c.err, ends)
	case c.err != nil && !a.mayEnd[c.instance] && failed == nil && !errors.Is(c.err, client.ErrNotFound):
		a.wrongf("client call %q of %q: %w", c.id, c.instance, c.err)
	}
}

// checkOrder checks that the calls of an execution to an instance were accepted in order, except calls that dead
// letters have displaced.
func (a *auditor) checkOrder() {
	type pair struct{ x, to string }
	type place struct{ incarnation, at int }
	last := map[pair]place{}
	for i := range a.sent {
		s := &a.sent[i]
		t := a.taken[s.event.InstanceID]
		if t == nil || s.named || a.displaced[s.id] || a.displaced[s.from.instance] {
			continue
		}
		for n, l := range t.incarnations {
			u := l.updates[s.id]
			if u == nil {
				continue
			}
			of, here := pair{s.from.id, s.event.InstanceID}, place{n, u.at}
			if before, some := last[of]; some && (before.incarnation > here.incarnation ||
				before.incarnation == here.incarnation && before.at >= here.at) {
				a.wrongf("call %q of %q to %q was accepted as %v, after a later call, %v",
					s.id, s.from.instance, s.event.InstanceID, here, before)
			}
			last[of] = here
			break
		}
	}
}

// once checks that each call with a generated ID was processed in at most one incarnation, and that no book contains a
// label twice.
func (a *auditor) once() {
	for _, instance := range slices.Sorted(maps.Keys(a.taken)) {
		incarnations := map[string]int{}
		for n, l := range a.taken[instance].incarnations {
			for id := range l.updates {
				if before, some := incarnations[id]; some && !strings.HasPrefix(id, chosenID) {
					a.wrongf("%q: update %q was accepted in incarnations %d and %d", instance, id, before, n)
				}
				incarnations[id] = n
			}
			posted := slices.Sorted(slices.Values(l.book.Posted))
			if len(slices.Compact(posted)) != len(l.book.Posted) {
				a.wrongf("%q: label posted twice: %v", instance, l.book.Posted)
			}
		}
	}
}

// finalBook returns the expected book of an instance.
func (a *auditor) finalBook(instance string) (b book, some bool) {
	t := a.taken[instance]
	if t == nil || len(t.incarnations) == 0 {
		return b, false
	}
	return t.incarnations[len(t.incarnations)-1].book, true
}

// checkBook compares the state of an account with its operations.
func (a *auditor) checkBook(ctx context.Context, key string) error {
	id := perdure.EntityInstanceID("account", key)
	want, some := a.finalBook(id)
	if _, err := a.w.h.Provider.ReadInstance(ctx, id); err != nil || !some {
		return nil //nolint:nilerr // purged, or never called
	}
	doc, err := a.w.h.QueryInstance(ctx, provider.QueryRequest{InstanceID: id, Name: perdure.EntityStateQuery})
	if err != nil {
		return fmt.Errorf("the state of %q: %w", id, err)
	}
	var got book
	if err := json.Unmarshal(doc, &got); err != nil || !got.equal(&want) {
		return errors.Join(err, fmt.Errorf("state of %q: got %+v, want %+v", id, got, want))
	}
	return nil
}
