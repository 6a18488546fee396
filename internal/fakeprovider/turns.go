package fakeprovider

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/documents"
	"github.com/perdure/perdure/provider/outputs"
)

const (
	// maxCommit is the maximum size of a commit, compressed.
	maxCommit = 3 << 20
	// clockSkew is the maximum difference between the clocks of two processes.
	clockSkew = 2 * time.Second
)

// orchestration returns the history of an execution, as turns read it.
func (p *Provider) orchestration(x *execution, c provider.Consistency) *provider.Orchestration {
	o := &provider.Orchestration{
		InstanceID: x.instanceID, Previous: x.previous, Verified: c == provider.Strong,
		Segments: slices.Clone(x.segments),
	}
	budget := documents.Budget{ExecutionID: x.ExecutionID}
	for i := range o.Segments {
		o.Segments[i].Events = copyEvents(o.Segments[i].Events)
		budget.Add(&o.Segments[i])
	}
	last := &o.Segments[len(o.Segments)-1]
	o.Head = provider.Head{ExecutionID: x.ExecutionID, Segment: last.Sequence, Watermark: last.Watermark}
	return o
}

// ReadOrchestration implements provider.Orchestrations.
func (p *Provider) ReadOrchestration(
	ctx context.Context, item *provider.OrchestrationItem, c provider.Consistency,
) (*provider.Orchestration, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	x, err := p.executionFor(item)
	if err != nil {
		return nil, err
	}
	return p.orchestration(x, c), nil
}

// executionFor returns the execution that the messages name, or the current one.
func (p *Provider) executionFor(item *provider.OrchestrationItem) (*execution, error) {
	named := ""
	for i := range item.Messages {
		named = cmp.Or(item.Messages[i].ExecutionID, named)
	}
	if x := p.executions[named]; x != nil && !x.erased && x.instanceID == item.InstanceID {
		if s := x.state(0); s.Last != history.OrchestrationContinuedAsNew {
			return x, nil
		}
	}
	in, err := p.instance(item.InstanceID)
	if err != nil {
		return nil, err
	}
	return in.current(), nil
}

// ReadDocument implements provider.Orchestrations. A hub of New ignores the segment of a reference.
func (p *Provider) ReadDocument(
	ctx context.Context, instanceID string, ref history.Reference,
) (json.RawMessage, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	at, err := history.ParseDataLocation(ref.Ref)
	if err != nil {
		return nil, fmt.Errorf("fake: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	x := p.executions[at.ExecutionID]
	if x == nil || x.erased || !p.forClients && (at.Segment < 0 || at.Segment >= int64(len(x.segments))) {
		return nil, fmt.Errorf("fake: instance %q: document at %s: %w", instanceID, ref.Ref, provider.ErrNotFound)
	}
	var events []history.Event
	if p.forClients {
		events = x.events()
	} else {
		events = x.segments[at.Segment].Events
	}
	doc, found := at.DocumentIn(events)
	if !found {
		err = fmt.Errorf("no document at %s", ref.Ref)
	} else {
		err = ref.Check(doc)
	}
	if err != nil {
		return nil, fmt.Errorf("fake: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	return doc, nil
}

// headOf returns the current execution of an instance if head is its head, or ErrConflict.
func (p *Provider) headOf(instanceID string, head provider.Head) (*instance, *execution, error) {
	in, err := p.instance(instanceID)
	if err == nil {
		x := in.current()
		if x.ExecutionID == head.ExecutionID && int64(len(x.segments)) == head.Segment+1 {
			return in, x, nil
		}
	}
	return nil, nil, fmt.Errorf("fake: instance %q: segment %d of execution %s: %w", instanceID, head.Segment,
		head.ExecutionID, provider.ErrConflict)
}

// AckOrchestrationItem implements provider.Orchestrations. The condition that the head is unchanged is the lock of the
// engine (I1).
func (p *Provider) AckOrchestrationItem(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	return p.commit(t)
}

func (p *Provider) commit(t *provider.Turn) ([]provider.OutputFailure, error) {
	if !t.LockedUntil.IsZero() && !p.now().Before(t.LockedUntil) {
		return nil, fmt.Errorf("fake: instance %q: segment %d was not committed: %w", t.InstanceID, t.Head.Segment+1,
			provider.ErrLockLost)
	}
	s := t.Segment()
	var err error
	if s.Events, err = storedEvents(t.InstanceID, t.Events, encode(t.Cancels), encode(t.Next)); err != nil {
		return nil, err
	}
	in, x, err := p.headOf(t.InstanceID, t.Head)
	if err != nil {
		return nil, err
	}
	x.add(s, t.Cancels)
	before, after := t.Summaries()
	if t.Next != nil {
		p.addExecution(in, t.Next.ExecutionID, x.ExecutionID, t.Next.Segment(t.Watermark))
		in.written = -1
		in.show(&after, p.time())
		in.Status, in.Diagnosis, in.BlockedBy, in.Paused = provider.StatusRunning, nil, "", nil
	}

	refused := p.sendOutputs(outputs.Of(outputs.TurnOrigin(t), s, outputs.Unsent(t)))
	p.sendEnds(outputs.TurnOrigin(t), s.Sequence, t.ObsoleteTimers())
	required := after.Status().Terminal() || after.Blocked.Active
	changed := after.StatusChanged(&before) || t.StatusWrite == provider.StatusWriteAlways
	if t.Next == nil && changed && (required || t.StatusWrite != provider.StatusWriteDeferred) {
		p.writeStatus(x, s.Sequence, &after)
	}
	return refused, nil
}

// storedEvents returns the events of a segment as a store returns them. It returns ErrTooLarge if they do not fit one
// commit together with its other parts.
func storedEvents(instanceID string, events []history.Event, others ...string) ([]history.Event, error) {
	doc, err := history.Encode(events)
	if err != nil {
		return nil, fmt.Errorf("fake: instance %q: %w", instanceID, err)
	}
	if n := compressedSize(string(doc) + strings.Join(others, "")); n > maxCommit {
		return nil, fmt.Errorf("fake: instance %q: commit of %d bytes: %w", instanceID, n, provider.ErrTooLarge)
	}
	return history.Decode(doc)
}

// compressedSize returns the size of a document that is stored with compression if it is large.
func compressedSize(doc string) int {
	if len(doc) <= maxCommit {
		return len(doc)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(doc)) // a buffer accepts everything
	_ = w.Close()
	return b.Len()
}

// writeStatus writes the status of an instance after a segment, unless a later one was written (R9).
func (p *Provider) writeStatus(x *execution, sequence int64, s *history.Summary) {
	in, err := p.instance(x.instanceID)
	if err != nil || in.current() != x || sequence <= in.written {
		return
	}
	in.written = sequence
	in.show(s, p.time())
}

// show copies the displayed state from a summary.
func (in *instance) show(s *history.Summary, now time.Time) {
	in.Status, in.Paused = s.Status(), s.Paused
	if in.Status != provider.StatusPending {
		in.UpdatedAt = now
	}
	if s.CustomStatus != nil {
		in.CustomStatus, _ = s.CustomStatus.Document()
	}
	if s.FirstTurnRun {
		in.Version = s.Version
	}
	in.Diagnosis, in.BlockedBy = nil, ""
	if s.Blocked.Active && s.Paused == nil {
		in.Diagnosis, in.BlockedBy = s.Blocked.Diagnosis, s.Blocked.LastBuild
	}
}

// sendOutputs sends the outputs of a segment, and returns those that can never be sent.
func (p *Provider) sendOutputs(out outputs.Set) (refused []provider.OutputFailure) {
	for i := range out.WorkItems {
		w := &out.WorkItems[i]
		if errorType, problem := p.sendWorkItem(w); errorType != "" {
			refused = append(refused, refuse(w.ActivityID, errorType, fmt.Sprintf("activity %q: %s", w.Name, problem)))
		}
	}
	for i := range out.Messages {
		m := out.Messages[i]
		id := m.SourceEventID
		if m.Kind == provider.MessageStart || m.IsSent() {
			m.SourceEventID = 0
		}
		problem := tooLarge(encode(&m))
		if isReply := m.Kind == provider.MessageChildOutcome ||
			m.Kind == provider.MessageUpdateAnswered; isReply && problem != "" {
			// the waiting caller must receive an outcome anyway
			m.Result, m.Error = nil, &history.Failure{
				Type: history.TypePayloadTooLarge, Message: problem, NonRetryable: true,
			}
			problem = ""
		}
		if problem != "" {
			refused = append(refused, refuse(id, history.TypePayloadTooLarge, problem))
			continue
		}
		p.sendMessages(m)
	}
	for i := range out.Timers {
		p.sendTimer(&out.Timers[i])
	}
	p.putUpdateResults(out.UpdateResults)
	return refused
}

func refuse(eventID int64, errorType, problem string) provider.OutputFailure {
	return provider.OutputFailure{
		EventID: eventID, Failure: history.Failure{Type: errorType, Message: problem, NonRetryable: true},
	}
}

// tooLarge returns the problem of a body that no queue accepts, or an empty string.
func tooLarge(body string) string {
	if len(body) <= maxBody {
		return ""
	}
	return fmt.Sprintf("message of %d bytes exceeds the limit of %d bytes", len(body), maxBody)
}

// sendWorkItem sends a work item. If no queue can ever accept it, it returns the type of the failure and the problem.
func (p *Provider) sendWorkItem(w *provider.WorkItem) (errorType, problem string) {
	w.Hub = hubName
	w.Token = p.tokens.Sign(w)
	body := encode(w)
	q := p.queues[w.Queue]
	base, exclusive := history.BaseQueue(w.Queue)
	switch {
	case q == nil && exclusive:
		return "ExclusiveQueueError", fmt.Sprintf("it has an exclusive key, but queue %q has no FIFO queue", base)
	case q == nil || w.Queue == provider.QueueInbox || w.Queue == provider.QueueTimers:
		return "UnknownQueueError", fmt.Sprintf("work queue %q does not exist", w.Queue)
	case tooLarge(body) != "":
		return history.TypePayloadTooLarge, tooLarge(body)
	}
	q.send(p.now(), p.visibleAt(w), w.ExclusiveKey, body, workID(w))
	return "", ""
}

// visibleAt returns the time at which a work item becomes visible. A FIFO queue cannot delay records.
func (p *Provider) visibleAt(w *provider.WorkItem) time.Time {
	if w.NotBefore == nil || w.ExclusiveKey != "" {
		return p.now()
	}
	return p.delayedUntil(*w.NotBefore)
}

// delayedUntil returns the time at which a delayed record becomes visible: less than a second before the given time, or
// after the maximum delay.
func (p *Provider) delayedUntil(at time.Time) time.Time {
	now := p.now()
	return now.Add(min(max(at.Sub(now), 0), maxDelay).Truncate(time.Second))
}

// workID identifies a work item in an exclusive queue, which drops repetitions.
func workID(w *provider.WorkItem) string {
	return fmt.Sprintf("%s %d %d %d %s", w.ExecutionID, w.ActivityID, w.Attempt, w.ResendCount, encode(w.Redrive))
}

func (p *Provider) sendTimer(t *provider.Timer) {
	sent := *t
	sent.Hub = hubName
	p.queues[provider.QueueTimers].send(p.now(), p.delayedUntil(sent.FireAt), "", encode(&sent), "")
}

// sendEnds sends the ends of the activities that a turn has cancelled, whose end is awaited, and that wait for their
// next attempt: no code runs then. A pending attempt gets a timer for the end of its grace period.
func (p *Provider) sendEnds(x outputs.Origin, sequence int64, cancelled []history.OpenItem) {
	var ends []provider.ActivityOutcome
	for i := range cancelled {
		o := &cancelled[i]
		r, failed := p.factsOf(x.ExecutionID).retries[o.ID]
		switch {
		case !o.WaitsForCancellation || !failed || x.Ended:
		case r.Pending != nil:
			at := p.now().Add(time.Duration(r.Pending.GraceMs) * time.Millisecond)
			if !r.NextCheckAt.IsZero() && r.NextCheckAt.Before(at) {
				at = r.NextCheckAt
			}
			p.sendTimer(&provider.Timer{
				V: provider.WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence,
				TimerID: o.ID, FireAt: at, Attempt: r.Attempt, WaitForCancellation: true,
			})
		case r.At.Sub(p.now()) > clockSkew:
			ends = append(ends, provider.ActivityOutcome{
				ActivityID: o.ID, Attempt: r.Attempt - 1, Error: r.Error,
				Ended: cmp.Or(r.Ended, history.OutcomeReturned),
			})
		}
	}
	if len(ends) > 0 {
		p.sendMessages(provider.Message{
			Kind: provider.MessageActivityOutcomes, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID,
			Segment: sequence, Outcomes: ends,
		})
	}
}

// RedispatchOrchestration implements provider.Orchestrations.
func (p *Provider) RedispatchOrchestration(
	ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom,
) (refused []provider.OutputFailure, err error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	head := p.executions[o.Head.ExecutionID]
	if head == nil || head.erased {
		return nil, fmt.Errorf("fake: instance %q: execution %s: %w", o.InstanceID, o.Head.ExecutionID,
			provider.ErrNotFound)
	}
	from, found := since.Position, since.HeadAt.IsZero()
	for x := o; ; {
		if !found {
			from, found = watermarkAt(x, since.HeadAt)
		}
		first := firstSince(x, from)
		refused = append(refused, p.sendUnsettled(x, first)...)
		if x == o {
			p.sendEnds(outputs.HistoryOrigin(o), o.Head.Segment, obsoleteTimers(o, first))
		}
		previous := p.executions[x.Previous]
		if previous == nil || previous.erased || found && !x.Segments[0].Watermark.Covers(from) {
			break
		}
		x = p.orchestration(previous, provider.Strong)
	}
	if s := o.State(0); o.Head.Segment > 0 {
		p.writeStatus(head, o.Head.Segment, &s.Summary)
	}
	return refused, nil
}

// watermarkAt returns the watermark of an execution at a time. found is false if it had not started.
func watermarkAt(x *provider.Orchestration, at time.Time) (watermark provider.Position, found bool) {
	for _, s := range slices.Backward(x.Segments) {
		if !s.Events[0].Time.After(at) {
			return s.Watermark, true
		}
	}
	return provider.Position{}, false
}

// firstSince returns the index of the first segment that consumed the message at from.
func firstSince(x *provider.Orchestration, from provider.Position) int {
	if from == (provider.Position{}) {
		return 0
	}
	for i := range x.Segments {
		if x.Segments[i].Watermark.Covers(from) {
			return i
		}
	}
	return len(x.Segments)
}

func obsoleteTimers(o *provider.Orchestration, first int) (all []history.OpenItem) {
	state := history.NewState(history.TrackTimers)
	for i := range o.Segments {
		if i >= first {
			all = append(all, state.ObsoleteTimers(o.Segments[i].Events...)...)
		}
		state.Apply(o.Segments[i].Events...)
	}
	return all
}

// sendUnsettled sends the outputs of segments again that history has not settled. It omits old starts and events for
// other instances, which could happen twice, and most outputs of a copied history (R30).
func (p *Provider) sendUnsettled(o *provider.Orchestration, first int) (refused []provider.OutputFailure) {
	settled := o.State(history.TrackOpen | history.TrackSettled).SettledSet()
	waits := map[int64]bool{}
	long := p.now().Add(-provider.MaxReconcileLookback)
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			e := &o.Segments[i].Events[j]
			waits[e.ID] = e.WaitsForCancellation()
			switch e.Kind {
			case history.DetachedOrchestrationScheduled, history.SubOrchestrationScheduled, history.ExternalEventSent,
				history.UpdateSent, history.UpdateCompleted, history.UpdateRejected:
				settled[e.ID] = settled[e.ID] || e.Time.Before(long)
			default:
			}
		}
	}
	copied := o.RestartedEvents()
	for i := range copied {
		switch copied[i].Kind {
		case history.DetachedOrchestrationScheduled, history.SubOrchestrationCancelRequested,
			history.ExternalEventRaised, history.InputsParked:
			settled[copied[i].ID] = true
		default:
		}
	}
	for _, s := range o.Segments[first:] {
		out := outputs.Of(outputs.HistoryOrigin(o), s, func(id int64) bool { return settled[id] })
		for i := range out.WorkItems {
			out.WorkItems[i].PossibleDuplicate = true
		}
		refused = append(refused, p.sendOutputs(out)...)
	}
	for i := range refused {
		if waits[refused[i].EventID] { // an earlier dispatch may have sent it
			refused[i].Ended = history.OutcomeWorkerLost
		}
	}
	return refused
}

// RefreshStatus implements provider.Orchestrations.
func (p *Provider) RefreshStatus(ctx context.Context, wake *provider.Message) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	item := &provider.OrchestrationItem{
		InstanceID: wake.InstanceID, Messages: []provider.InboxMessage{{Message: *wake}},
	}
	x, err := p.executionFor(item)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	s := x.state(0)
	if last := int64(len(x.segments)) - 1; last > 0 && !s.Ended() && !s.Blocked.Active {
		p.writeStatus(x, last, &s.Summary)
	}
	return nil
}

// TerminateCorrupt implements provider.Orchestrations. Histories in memory are never damaged.
func (p *Provider) TerminateCorrupt(ctx context.Context, m *provider.InboxMessage) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	in, err := p.instance(m.InstanceID)
	if err != nil || in.Status.Terminal() || m.StartID != "" && m.StartID != in.StartID {
		return err
	}
	x, now := in.current(), p.time()
	state := x.state(history.TrackOpen)
	end := history.Event{
		ID: state.LastID + 1, Kind: history.OrchestrationTerminated, Time: now, Message: m.Text,
		RequestedBy: history.Requester(m.RequestedBy), TraceParent: m.TraceParent,
	}
	_, err = p.commit(&provider.Turn{
		InstanceID: in.InstanceID, Head: p.orchestration(x, provider.Strong).Head, Watermark: m.Position, Before: state,
		Events:  []history.Event{end},
		Cancels: provider.Cancels{{All: true, Reason: history.TerminalReason(end.Kind), At: now}},
	})
	return err
}

// BlockInstance implements provider.Orchestrations.
func (p *Provider) BlockInstance(
	ctx context.Context, instanceID, executionID, buildID string, why *history.Failure,
) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	in, err := p.instance(instanceID)
	if err != nil || in.ExecutionID != executionID || in.Status.Terminal() ||
		why == nil && in.Status == provider.StatusPaused {
		return nil
	}
	in.UpdatedAt, in.Paused, in.Diagnosis, in.BlockedBy = p.time(), nil, why, buildID
	in.Status = provider.StatusBlocked
	if why == nil {
		in.Status, in.BlockedBy = provider.StatusRunning, ""
	}
	return nil
}
