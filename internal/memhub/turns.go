package memhub

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// turns commits turns and sends their outputs.
type turns struct {
	*base

	histories *histories
	instances *instances
	outbox    *outbox
}

// maxCommit is the maximum size of a commit, compressed.
const maxCommit = 3 << 20

// AckOrchestrationItem implements provider.Orchestrations. The condition that the head is unchanged is the lock of the
// engine (I1).
func (st *turns) AckOrchestrationItem(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	return callFor(ctx, st.base, func() ([]provider.OutputFailure, error) {
		return st.commit(t)
	})
}

func (st *turns) commit(t *provider.Turn) ([]provider.OutputFailure, error) {
	if !t.LockedUntil.IsZero() && !st.now().Before(t.LockedUntil) {
		return nil, fmt.Errorf("fake: instance %q: segment %d was not committed: %w", t.InstanceID, t.Head.Segment+1,
			provider.ErrLockLost)
	}
	s := t.Segment()
	var err error
	if s.Events, err = storedEvents(t.InstanceID, t.Events, encode(t.Cancels), encode(t.Next)); err != nil {
		return nil, err
	}
	in, x, err := st.instances.headOf(t.InstanceID, t.Head)
	if err != nil {
		return nil, err
	}
	x.add(s, t.Cancels)
	before, after := t.Summaries()
	if t.Next != nil {
		st.instances.addExecution(in, t.Next.ExecutionID, x.ExecutionID, t.Next.Segment(t.Watermark))
		in.written = -1
		in.show(&after, st.time())
		in.Status, in.Diagnosis, in.BlockedBy, in.Paused = provider.StatusRunning, nil, "", nil
	}

	refused := st.outbox.send(outputs.Of(outputs.TurnOrigin(t), s, outputs.Unsent(t)))
	st.outbox.sendEnds(outputs.TurnOrigin(t), s.Sequence, t.ObsoleteTimers())
	required := after.Status().Terminal() || after.Blocked.Active
	changed := after.StatusChanged(&before) || t.StatusWrite == provider.StatusWriteAlways
	if t.Next == nil && changed && (required || t.StatusWrite != provider.StatusWriteDeferred) {
		st.writeStatus(x, s.Sequence, &after)
	}
	return refused, nil
}

// storedEvents returns the events of a segment in the form in which a store returns them. It returns ErrTooLarge if a
// commit cannot contain them together with its other parts.
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
	_, _ = w.Write([]byte(doc)) // writes to a buffer never fail
	_ = w.Close()
	return b.Len()
}

// writeStatus writes the status of an instance after a segment, unless a later status was written (R9).
func (st *turns) writeStatus(x *execution, sequence int64, s *history.Summary) {
	in, err := st.instances.find(x.instanceID)
	if err != nil || in.current() != x || sequence <= in.written {
		return
	}
	in.written = sequence
	in.show(s, st.time())
}

// show copies the displayed state of a summary to the instance.
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

// RefreshStatus implements provider.Orchestrations.
func (st *turns) RefreshStatus(ctx context.Context, wake *provider.Message) error {
	return st.call(ctx, func() error {
		item := &provider.OrchestrationItem{
			InstanceID: wake.InstanceID, Messages: []provider.InboxMessage{{Message: *wake}},
		}
		x, err := st.instances.executionFor(item)
		if errors.Is(err, provider.ErrNotFound) {
			return nil
		}
		s := x.state(0)
		if last := int64(len(x.segments)) - 1; last > 0 && !s.Ended() && !s.Blocked.Active {
			st.writeStatus(x, last, &s.Summary)
		}
		return nil
	})
}

// TerminateCorrupt implements provider.Orchestrations. Histories in memory are never damaged.
func (st *turns) TerminateCorrupt(ctx context.Context, m *provider.InboxMessage) error {
	if err := st.begin(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	in, err := st.instances.find(m.InstanceID)
	if err != nil || in.Status.Terminal() || m.StartID != "" && m.StartID != in.StartID {
		return err
	}
	x, now := in.current(), st.time()
	state := x.state(history.TrackOpen)
	end := history.Event{
		ID: state.LastID + 1, Kind: history.OrchestrationTerminated, Time: now, Message: m.Text,
		RequestedBy: history.Requester(m.RequestedBy), TraceParent: m.TraceParent,
	}
	_, err = st.commit(&provider.Turn{
		InstanceID: in.InstanceID, Head: x.orchestration(provider.Strong).Head, Watermark: m.Position, Before: state,
		Events:  []history.Event{end},
		Cancels: provider.Cancels{{All: true, Reason: history.TerminalReason(end.Kind), At: now}},
	})
	return err
}

// BlockInstance implements provider.Orchestrations.
func (st *turns) BlockInstance(
	ctx context.Context, instanceID, executionID, buildID string, why *history.Failure,
) error {
	return st.call(ctx, func() error {
		in, err := st.instances.find(instanceID)
		if err != nil || in.ExecutionID != executionID || in.Status.Terminal() {
			return nil //nolint:nilerr // there is no such execution to block
		}
		in.UpdatedAt, in.Paused, in.Diagnosis, in.BlockedBy = st.time(), nil, why, buildID
		in.Status = provider.StatusBlocked
		return nil
	})
}
