// Package verification replays histories with an orchestrator binary that is not deployed, for perdure verify and
// perdure import.
package verification

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/scan"
	"github.com/perdure/perdure/internal/replaycheck"
	"github.com/perdure/perdure/provider"
)

const (
	// concurrency is the number of processes of the binary. They spend most of the time reading histories.
	concurrency = 4
	// maxFindings limits the findings of each outcome, and of a result.
	maxFindings = 1000
)

// Verification replays instances of a hub.
type Verification struct {
	env    *cli.Env
	client *client.Client
	binary string

	mu       sync.Mutex
	sample   *sample
	counts   map[scan.Version]*VersionCount
	findings map[Outcome][]Finding // at most maxFindings each
	chosen   int
	replayed int
	progress *cli.Progress
}

// New returns a Verification with the binary at a path.
func New(env *cli.Env, cl *client.Client, binary string) *Verification {
	return &Verification{
		env: env, client: cl, binary: binary, sample: newSample(), counts: map[scan.Version]*VersionCount{},
		findings: map[Outcome][]Finding{}, progress: &cli.Progress{},
	}
}

// Run replays a sample of up to limit instances that have not ended. After an error, Result returns the findings so
// far.
func (v *Verification) Run(ctx context.Context, name string, limit int) error {
	first, err := startReplay(ctx, v.binary)
	if err != nil {
		return err // before the instances are listed, which can take long
	}
	defer first.stop()
	v.progress = v.env.StartProgress()
	defer v.progress.Stop()

	list := func(p client.Paging) (page client.Page[client.Status], err error) {
		err = v.retry(ctx, func() error {
			page, err = v.client.ListPage(ctx, client.ListQuery{Orchestration: name}, p)
			return err
		})
		return page, err
	}
	if err := scan.EachInstance(list, v.progress, v.sampler(limit)); err != nil {
		return err
	}
	chosen := v.sample.choose(limit)
	v.chosen = len(chosen)
	v.progress.Set(v.progressText())
	return v.replayAll(ctx, chosen, first)
}

// sampler returns a function that counts an instance that has not ended and offers it to the sample.
func (v *Verification) sampler(limit int) func(*client.Status) {
	return func(s *client.Status) {
		if s.Status.Terminal() || s.Status == client.StatusDeleting {
			return
		}
		of := scan.Version{Orchestration: s.Orchestration, Version: s.Version}
		v.count(of).Open++
		v.sample.offer(of, s.InstanceID, limit)
	}
}

func (v *Verification) count(of scan.Version) *VersionCount {
	n := v.counts[of]
	if n == nil {
		n = &VersionCount{Orchestration: of.Orchestration, Version: of.Version}
		v.counts[of] = n
	}
	return n
}

// replayAll replays instances concurrently, with one process for each goroutine.
func (v *Verification) replayAll(ctx context.Context, chosen []candidate, first *replayProcess) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan candidate)
	var replaying sync.WaitGroup
	for n := range min(concurrency, len(chosen)) {
		replaying.Go(func() {
			p := &replayer{binary: v.binary}
			if n == 0 {
				p.process = first
			}
			defer p.stop()
			for c := range next {
				if err := v.replay(ctx, p, c); err != nil {
					cancel(err)
				}
			}
		})
	}

	for _, c := range chosen {
		select {
		case next <- c:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	replaying.Wait()
	return context.Cause(ctx)
}

// replay replays an instance unless it has ended since it was listed.
func (v *Verification) replay(ctx context.Context, p *replayer, c candidate) error {
	var h *replaycheck.History
	var s client.Status
	err := v.retry(ctx, func() (err error) {
		h, s, err = v.read(ctx, c.id)
		return err
	})
	switch {
	case errors.Is(err, provider.ErrCorrupt):
		v.addVerdict(c, &s, &replaycheck.Verdict{Unread: err.Error()})
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
	v.addVerdict(c, &s, verdict)
	return nil
}

// read reads the history of an instance's current execution. It returns nil if the instance has ended or was purged
// since it was listed.
func (v *Verification) read(ctx context.Context, id string) (*replaycheck.History, client.Status, error) {
	s, err := v.client.Status(ctx, id)
	if errors.Is(err, client.ErrNotFound) || err == nil && (s.Status.Terminal() || s.Status == client.StatusDeleting) {
		return nil, s, nil
	}
	if err != nil {
		return nil, s, err
	}

	h := replaycheck.History{InstanceID: id, ExecutionID: s.ExecutionID}
	for e, err := range v.client.History(ctx, id, client.WithExecutionID(s.ExecutionID)) {
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

// addVerdict counts an instance under the version with which it was listed, and adds its finding.
func (v *Verification) addVerdict(c candidate, s *client.Status, verdict *replaycheck.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.count(c.of)
	v.replayed++
	n.Replayed++

	f := Finding{
		InstanceID: c.id, ExecutionID: s.ExecutionID, Orchestration: c.of.Orchestration,
		Version: cmp.Or(s.Version, c.of.Version), EventID: verdict.EventID,
		Problem: cmp.Or(verdict.Problem, verdict.Unread),
	}
	switch {
	case verdict.Unread != "" && !verdict.Blocks:
		n.Unread++
		f.Outcome = OutcomeUnread
	case f.Problem != "" && s.Status == client.StatusBlocked:
		n.StayBlocked++
		f.Outcome = OutcomeStaysBlocked
	case f.Problem != "":
		n.WouldBlock++
		f.Outcome = OutcomeWouldBlock
	case verdict.OtherInputs > 0:
		n.OtherInputs++
		f.Outcome, f.Problem = OutcomeOtherInputs, otherInputsText(verdict)
	default:
		f.Outcome = OutcomeContinues
	}
	v.addFinding(&f)
	v.progress.Set(v.progressText())
}

func (v *Verification) progressText() string {
	blocks, unread := 0, 0
	for _, n := range v.counts {
		blocks += n.WouldBlock
		unread += n.Unread
	}
	return fmt.Sprintf("%d of %d instances replayed, %d would be blocked, %d unreadable",
		v.replayed, v.chosen, blocks, unread)
}

// addFinding adds a finding unless its outcome already has maxFindings. Each outcome has its own limit, so that
// harmless findings cannot displace others.
func (v *Verification) addFinding(f *Finding) {
	if all := v.findings[f.Outcome]; f.Outcome != OutcomeContinues && len(all) < maxFindings {
		v.findings[f.Outcome] = append(all, *f)
	}
}

// mostSevereFirst is the order of the outcomes in a result.
var mostSevereFirst = []Outcome{OutcomeWouldBlock, OutcomeStaysBlocked, OutcomeUnread, OutcomeOtherInputs}

// Result returns the counts and the findings, the worst findings first.
func (v *Verification) Result() Result {
	r := Result{
		Orchestrations: []VersionCount{}, Findings: []Finding{}, Chosen: v.chosen, Replayed: v.replayed,
		retry: v.progress.Retry(),
	}
	for _, n := range v.counts {
		r.Orchestrations = append(r.Orchestrations, *n)
		r.Open += n.Open
	}
	slices.SortFunc(r.Orchestrations, func(a, b VersionCount) int {
		return cmp.Or(cmp.Compare(a.Orchestration, b.Orchestration), cmp.Compare(a.Version, b.Version))
	})
	for _, o := range mostSevereFirst {
		found := v.findings[o]
		slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.InstanceID, b.InstanceID) })
		r.Findings = append(r.Findings, found...)
	}
	r.Findings = r.Findings[:min(len(r.Findings), maxFindings)]
	return r
}

// otherInputsText returns the number of inputs that differ, and the first one.
func otherInputsText(v *replaycheck.Verdict) string {
	return fmt.Sprintf("%d inputs differ from the recorded inputs: %s", v.OtherInputs, v.FirstInput)
}
