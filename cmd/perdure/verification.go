package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/rehearsal"
	"github.com/perdure/perdure/provider"
)

const (
	// verifyAtOnce is how many processes of the binary replay side by side: most of the time is reading.
	verifyAtOnce = 4
	// mostFindings bounds what is kept of a hub in which everything would be blocked.
	mostFindings = 1000
)

// verification has a binary replay instances.
type verification struct {
	c      *command
	cl     *client.Client
	binary string

	mu       sync.Mutex
	sample   *sample
	counts   map[versionOf]*verifiedCount
	findings []finding
	chosen   int
	replayed int
	told     time.Time
}

func newVerification(c *command, cl *client.Client, binary string) *verification {
	return &verification{c: c, cl: cl, binary: binary, sample: newSample(), counts: map[versionOf]*verifiedCount{}, told: time.Now()}
}

// run replays a sample of the instances that are not over. What it has found is there when it returns an error, too.
func (v *verification) run(ctx context.Context, name string, most int) error {
	first, err := startRehearsal(ctx, v.binary)
	if err != nil {
		return err // before a hub of millions is read
	}
	defer first.stop()

	if err := eachInstance(ctx, v.c, v.cl, client.Query{Name: name}, v.open(most)); err != nil {
		return err
	}
	chosen := v.sample.choose(most)
	v.chosen = len(chosen)
	return v.replayAll(ctx, chosen, first)
}

// open counts an instance that is not over, and offers it to the sample.
func (v *verification) open(most int) func(*client.Status) {
	return func(s *client.Status) {
		if s.Status.Terminal() || s.Status == client.StatusDeleting {
			return
		}
		of := versionOf{s.Orchestration, s.Version}
		v.count(of).Open++
		v.sample.offer(of, s.InstanceID, most)
	}
}

// count returns the counts of a version.
func (v *verification) count(of versionOf) *verifiedCount {
	n := v.counts[of]
	if n == nil {
		n = &verifiedCount{Orchestration: of.orchestration, Version: of.version}
		v.counts[of] = n
	}
	return n
}

// replayAll replays instances, some at once, each by a process of its own.
func (v *verification) replayAll(ctx context.Context, chosen []drawn, first *rehearsing) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan drawn)
	var working sync.WaitGroup
	for n := range min(verifyAtOnce, len(chosen)) {
		working.Go(func() {
			p := &rehearser{binary: v.binary}
			if n == 0 {
				p.running = first
			}
			defer p.stop()
			for d := range next {
				if err := v.replay(ctx, p, d); err != nil {
					cancel(err)
				}
			}
		})
	}

	for _, d := range chosen {
		select {
		case next <- d:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	working.Wait()
	return context.Cause(ctx)
}

// replay has a process replay an instance, unless that is over by now.
func (v *verification) replay(ctx context.Context, p *rehearser, d drawn) error {
	h, s, err := v.read(ctx, d.id)
	switch {
	case errors.Is(err, provider.ErrCorrupt):
		v.found(d.of, &s, &rehearsal.Verdict{Unread: err.Error()})
		return nil
	case err != nil:
		return err
	case h == nil:
		return nil
	}

	verdict, err := p.replay(ctx, h, v.fetch(ctx, d.id))
	if err != nil {
		return err
	}
	v.found(d.of, &s, verdict)
	return nil
}

// read reads the history of an instance's current execution: none, where it is over or was purged since it was listed.
func (v *verification) read(ctx context.Context, id string) (*rehearsal.History, client.Status, error) {
	s, err := v.cl.Status(ctx, id)
	if errors.Is(err, client.ErrNotFound) || err == nil && (s.Status.Terminal() || s.Status == client.StatusDeleting) {
		return nil, s, nil
	}
	if err != nil {
		return nil, s, err
	}

	h := rehearsal.History{InstanceID: id, ExecutionID: s.ExecutionID}
	for e, err := range v.cl.History(ctx, id, client.WithExecution(s.ExecutionID)) {
		if errors.Is(err, client.ErrNotFound) {
			return nil, s, nil
		}
		if err != nil {
			return nil, s, err
		}
		h.Events = append(h.Events, e)
	}
	return &h, s, nil
}

// fetch reads what the history of an instance refers to: an event of this or a past execution.
func (v *verification) fetch(ctx context.Context, id string) fetcher {
	return func(ref history.Reference) (json.RawMessage, error) {
		at, err := history.ParsePlace(ref.Ref)
		if err != nil {
			return nil, err
		}
		for e, err := range v.cl.History(ctx, id, client.WithExecution(at.ExecutionID), client.After(at.EventID-1)) {
			if err != nil {
				return nil, err
			}
			data, _ := at.Find([]history.Event{e})
			doc, ok := data.Document()
			if !ok || len(data) == 0 {
				break
			}
			return doc, ref.Check(doc)
		}
		return nil, fmt.Errorf("the history of instance %q lacks it", id)
	}
}

// found takes down what became of an instance, under the version that it was listed with.
func (v *verification) found(of versionOf, s *client.Status, verdict *rehearsal.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.count(of)
	v.replayed++
	n.Replayed++

	f := finding{InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, Orchestration: s.Orchestration, Version: s.Version, EventID: verdict.EventID, Problem: verdict.Problem}
	switch {
	case verdict.Unread != "":
		n.Unread++
		f.Outcome, f.Problem = outcomeUnread, verdict.Unread
	case verdict.Problem != "" && s.Status == client.StatusBlocked:
		n.StayBlocked++
		f.Outcome = outcomeStaysBlock
	case verdict.Problem != "":
		n.WouldBlock++
		f.Outcome = outcomeWouldBlock
	case verdict.OtherInputs > 0:
		n.OtherInputs++
		f.Outcome, f.Problem = outcomeOtherInputs, otherInputs(verdict)
	default:
		f.Outcome = outcomeGoesOn
	}
	if f.Outcome != outcomeGoesOn && len(v.findings) < mostFindings {
		v.findings = append(v.findings, f)
	}

	if v.c.attended && time.Since(v.told) >= progressEvery {
		v.told = time.Now()
		fmt.Fprintf(v.c.err, "perdure: %d of %d instances replayed\n", v.replayed, v.chosen)
	}
}

// result is what was found, what is worst first.
func (v *verification) result() verified {
	r := verified{Orchestrations: []verifiedCount{}, Findings: v.findings, Chosen: v.chosen, Replayed: v.replayed}
	for _, n := range v.counts {
		r.Orchestrations = append(r.Orchestrations, *n)
		r.Open += n.Open
	}
	slices.SortFunc(r.Orchestrations, func(a, b verifiedCount) int {
		return cmp.Or(cmp.Compare(a.Orchestration, b.Orchestration), cmp.Compare(a.Version, b.Version))
	})
	if r.Findings == nil {
		r.Findings = []finding{}
	}
	severity := []outcome{outcomeWouldBlock, outcomeStaysBlock, outcomeUnread, outcomeOtherInputs}
	slices.SortFunc(r.Findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(slices.Index(severity, a.Outcome), slices.Index(severity, b.Outcome)), cmp.Compare(a.InstanceID, b.InstanceID))
	})
	return r
}

// otherInputs says which inputs a replay has found to differ.
func otherInputs(v *rehearsal.Verdict) string {
	return fmt.Sprintf("%d inputs differ from those recorded: %s", v.OtherInputs, v.FirstInput)
}
