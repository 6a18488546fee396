package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/replaycheck"
	"github.com/perdure/perdure/provider"
)

const (
	// verifyAtOnce is how many processes of the binary replay side by side: most of the time is reading.
	verifyAtOnce = 4
	// mostFindings bounds what is told of a hub in which everything would be blocked.
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
	findings map[outcome][]finding // mostFindings of each
	chosen   int
	replayed int
	pace     *pace
}

func newVerification(c *command, cl *client.Client, binary string) *verification {
	return &verification{c: c, cl: cl, binary: binary, sample: newSample(), counts: map[versionOf]*verifiedCount{}, findings: map[outcome][]finding{}, pace: &pace{}}
}

// run replays a sample of the instances that are not over. What it has found is there when it returns an error, too.
func (v *verification) run(ctx context.Context, name string, most int) error {
	first, err := startRehearsal(ctx, v.binary)
	if err != nil {
		return err // before a hub of millions is read
	}
	defer first.stop()
	v.pace = startPace(v.c)
	defer v.pace.end()

	list := func(p client.Paging) (page client.Page[client.Status], err error) {
		err = v.patiently(ctx, func() error {
			page, err = v.cl.ListPage(ctx, client.ListQuery{Orchestration: name}, p)
			return err
		})
		return page, err
	}
	if err := eachInstance(list, v.pace, v.open(most)); err != nil {
		return err
	}
	chosen := v.sample.choose(most)
	v.chosen = len(chosen)
	v.pace.at(v.reached())
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
	var h *replaycheck.History
	var s client.Status
	err := v.patiently(ctx, func() (err error) {
		h, s, err = v.read(ctx, d.id)
		return err
	})
	switch {
	case errors.Is(err, provider.ErrCorrupt):
		v.found(d, &s, &replaycheck.Verdict{Unread: err.Error()})
		return nil
	case err != nil:
		return err
	case h == nil:
		return nil
	}

	verdict, err := p.replay(ctx, h, v.source(ctx, h))
	if err != nil {
		return err
	}
	v.found(d, &s, verdict)
	return nil
}

// read reads the history of an instance's current execution: none, where it is over or was purged since it was listed.
func (v *verification) read(ctx context.Context, id string) (*replaycheck.History, client.Status, error) {
	s, err := v.cl.Status(ctx, id)
	if errors.Is(err, client.ErrNotFound) || err == nil && (s.Status.Terminal() || s.Status == client.StatusDeleting) {
		return nil, s, nil
	}
	if err != nil {
		return nil, s, err
	}

	h := replaycheck.History{InstanceID: id, ExecutionID: s.ExecutionID}
	for e, err := range v.cl.History(ctx, id, client.WithExecutionID(s.ExecutionID)) {
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

// found takes down what became of an instance, under the version that it was listed with.
func (v *verification) found(d drawn, s *client.Status, verdict *replaycheck.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.count(d.of)
	v.replayed++
	n.Replayed++

	f := finding{InstanceID: d.id, ExecutionID: s.ExecutionID, Orchestration: d.of.orchestration, Version: cmp.Or(s.Version, d.of.version), EventID: verdict.EventID, Problem: cmp.Or(verdict.Problem, verdict.Unread)}
	switch {
	case verdict.Unread != "" && !verdict.Blocks:
		n.Unread++
		f.Outcome = outcomeUnread
	case f.Problem != "" && s.Status == client.StatusBlocked:
		n.StayBlocked++
		f.Outcome = outcomeStaysBlock
	case f.Problem != "":
		n.WouldBlock++
		f.Outcome = outcomeWouldBlock
	case verdict.OtherInputs > 0:
		n.OtherInputs++
		f.Outcome, f.Problem = outcomeOtherInputs, otherInputs(verdict)
	default:
		f.Outcome = outcomeGoesOn
	}
	v.keep(&f)
	v.pace.at(v.reached())
}

// reached says how far it has come.
func (v *verification) reached() string {
	blocks, unread := 0, 0
	for _, n := range v.counts {
		blocks += n.WouldBlock
		unread += n.Unread
	}
	return fmt.Sprintf("%d of %d instances replayed, %d would be blocked, %d unreadable",
		v.replayed, v.chosen, blocks, unread)
}

// keep keeps a finding, unless there are enough of its outcome: what is worst must not be hidden by what is told first.
func (v *verification) keep(f *finding) {
	if kept := v.findings[f.Outcome]; f.Outcome != outcomeGoesOn && len(kept) < mostFindings {
		v.findings[f.Outcome] = append(kept, *f)
	}
}

// worstFirst are the outcomes that are told of, in their order.
var worstFirst = []outcome{outcomeWouldBlock, outcomeStaysBlock, outcomeUnread, outcomeOtherInputs}

// result is what was found, what is worst first.
func (v *verification) result() verified {
	r := verified{Orchestrations: []verifiedCount{}, Findings: []finding{}, Chosen: v.chosen, Replayed: v.replayed, waits: v.pace.waiting()}
	for _, n := range v.counts {
		r.Orchestrations = append(r.Orchestrations, *n)
		r.Open += n.Open
	}
	slices.SortFunc(r.Orchestrations, func(a, b verifiedCount) int {
		return cmp.Or(cmp.Compare(a.Orchestration, b.Orchestration), cmp.Compare(a.Version, b.Version))
	})
	for _, o := range worstFirst {
		found := v.findings[o]
		slices.SortFunc(found, func(a, b finding) int { return cmp.Compare(a.InstanceID, b.InstanceID) })
		r.Findings = append(r.Findings, found...)
	}
	r.Findings = r.Findings[:min(len(r.Findings), mostFindings)]
	return r
}

// otherInputs says which inputs a replay has found to differ.
func otherInputs(v *replaycheck.Verdict) string {
	return fmt.Sprintf("%d inputs differ from those recorded: %s", v.OtherInputs, v.FirstInput)
}
