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
	// verifyAtOnce is how many processes of the binary replay side by side: most of the time is reading.
	concurrency = 4
	// mostFindings bounds what is told of a hub in which everything would be blocked.
	maxFindings = 1000
)

// verification has a binary replay instances.
type Verification struct {
	env    *cli.Env
	client *client.Client
	binary string

	mu       sync.Mutex
	sample   *sample
	counts   map[scan.Version]*VersionCount
	findings map[Outcome][]Finding // mostFindings of each
	chosen   int
	replayed int
	progress *cli.Progress
}

func New(c *cli.Env, cl *client.Client, binary string) *Verification {
	return &Verification{env: c, client: cl, binary: binary, sample: newSample(), counts: map[scan.Version]*VersionCount{}, findings: map[Outcome][]Finding{}, progress: &cli.Progress{}}
}

// run replays a sample of the instances that are not over. What it has found is there when it returns an error, too.
func (v *Verification) Run(ctx context.Context, name string, most int) error {
	first, err := startReplay(ctx, v.binary)
	if err != nil {
		return err // before a hub of millions is read
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
	if err := scan.EachInstance(list, v.progress, v.sampler(most)); err != nil {
		return err
	}
	chosen := v.sample.choose(most)
	v.chosen = len(chosen)
	v.progress.Set(v.reached())
	return v.replayAll(ctx, chosen, first)
}

// open counts an instance that is not over, and offers it to the sample.
func (v *Verification) sampler(most int) func(*client.Status) {
	return func(s *client.Status) {
		if s.Status.Terminal() || s.Status == client.StatusDeleting {
			return
		}
		of := scan.Version{Orchestration: s.Orchestration, Version: s.Version}
		v.count(of).Open++
		v.sample.offer(of, s.InstanceID, most)
	}
}

// count returns the counts of a version.
func (v *Verification) count(of scan.Version) *VersionCount {
	n := v.counts[of]
	if n == nil {
		n = &VersionCount{Orchestration: of.Orchestration, Version: of.Version}
		v.counts[of] = n
	}
	return n
}

// replayAll replays instances, some at once, each by a process of its own.
func (v *Verification) replayAll(ctx context.Context, chosen []candidate, first *replayProcess) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan candidate)
	var working sync.WaitGroup
	for n := range min(concurrency, len(chosen)) {
		working.Go(func() {
			p := &replayer{binary: v.binary}
			if n == 0 {
				p.process = first
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
func (v *Verification) replay(ctx context.Context, p *replayer, d candidate) error {
	var h *replaycheck.History
	var s client.Status
	err := v.retry(ctx, func() (err error) {
		h, s, err = v.read(ctx, d.id)
		return err
	})
	switch {
	case errors.Is(err, provider.ErrCorrupt):
		v.addVerdict(d, &s, &replaycheck.Verdict{Unread: err.Error()})
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
	v.addVerdict(d, &s, verdict)
	return nil
}

// read reads the history of an instance's current execution: none, where it is over or was purged since it was listed.
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

// found takes down what became of an instance, under the version that it was listed with.
func (v *Verification) addVerdict(d candidate, s *client.Status, verdict *replaycheck.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.count(d.of)
	v.replayed++
	n.Replayed++

	f := Finding{InstanceID: d.id, ExecutionID: s.ExecutionID, Orchestration: d.of.Orchestration, Version: cmp.Or(s.Version, d.of.Version), EventID: verdict.EventID, Problem: cmp.Or(verdict.Problem, verdict.Unread)}
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
		f.Outcome, f.Problem = OutcomeOtherInputs, otherInputs(verdict)
	default:
		f.Outcome = OutcomeContinues
	}
	v.addFinding(&f)
	v.progress.Set(v.reached())
}

// reached says how far it has come.
func (v *Verification) reached() string {
	blocks, unread := 0, 0
	for _, n := range v.counts {
		blocks += n.WouldBlock
		unread += n.Unread
	}
	return fmt.Sprintf("%d of %d instances replayed, %d would be blocked, %d unreadable",
		v.replayed, v.chosen, blocks, unread)
}

// keep keeps a finding, unless there are enough of its outcome: what is worst must not be hidden by what is told first.
func (v *Verification) addFinding(f *Finding) {
	if kept := v.findings[f.Outcome]; f.Outcome != OutcomeContinues && len(kept) < maxFindings {
		v.findings[f.Outcome] = append(kept, *f)
	}
}

// worstFirst are the outcomes that are told of, in their order.
var worstFirst = []Outcome{OutcomeWouldBlock, OutcomeStaysBlocked, OutcomeUnread, OutcomeOtherInputs}

// result is what was found, what is worst first.
func (v *Verification) Result() Result {
	r := Result{Orchestrations: []VersionCount{}, Findings: []Finding{}, Chosen: v.chosen, Replayed: v.replayed, retry: v.progress.Retry()}
	for _, n := range v.counts {
		r.Orchestrations = append(r.Orchestrations, *n)
		r.Open += n.Open
	}
	slices.SortFunc(r.Orchestrations, func(a, b VersionCount) int {
		return cmp.Or(cmp.Compare(a.Orchestration, b.Orchestration), cmp.Compare(a.Version, b.Version))
	})
	for _, o := range worstFirst {
		found := v.findings[o]
		slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.InstanceID, b.InstanceID) })
		r.Findings = append(r.Findings, found...)
	}
	r.Findings = r.Findings[:min(len(r.Findings), maxFindings)]
	return r
}

// otherInputs says which inputs a replay has found to differ.
func otherInputs(v *replaycheck.Verdict) string {
	return fmt.Sprintf("%d inputs differ from those recorded: %s", v.OtherInputs, v.FirstInput)
}
