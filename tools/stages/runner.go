package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// runner starts stages in order. It starts a stage as soon as the stages that are running leave it enough cores, so a
// later stage may overtake an earlier one that needs more of them.
type runner struct {
	out   io.Writer
	cores float64
	// start runs a stage to its end.
	start func(context.Context, stage) result
}

// run runs all stages, also those after a stage that failed, and prints their outcomes. A stage whose predecessor
// failed is skipped.
func (r *runner) run(ctx context.Context, stages []stage) error {
	began := time.Now()
	waiting, running := slices.Clone(stages), map[string]stage{}
	ended, results := make(chan result), []result(nil)
	for len(waiting) > 0 || len(running) > 0 {
		waiting = slices.DeleteFunc(waiting, func(s stage) bool {
			switch r.next(ctx, s, running, results, waiting) {
			case skip:
				results = append(results, result{stage: s, outcome: "skipped"})
				return true
			case begin:
				running[s.Target] = s
				r.logf("%s started\n", s.Target)
				go func() { ended <- r.start(ctx, s) }()
				return true
			default:
				return false
			}
		})
		if len(running) == 0 {
			continue
		}
		done := <-ended
		delete(running, done.stage.Target)
		results = append(results, done)
		r.logf("%s %s in %s\n", done.stage.Target, done.outcome, seconds(done.took))
	}
	return r.report(results, time.Since(began))
}

type decision int

const (
	wait decision = iota
	begin
	skip
)

// next decides whether a waiting stage starts now.
func (r *runner) next(
	ctx context.Context, s stage, running map[string]stage, results []result, waiting []stage,
) decision {
	if ctx.Err() != nil {
		return skip
	}
	busy := 0.0
	for _, other := range running {
		busy += other.Cores
	}
	for _, name := range s.After {
		i := slices.IndexFunc(results, func(done result) bool { return done.stage.Target == name })
		switch {
		case i >= 0 && results[i].failed():
			return skip
		case i < 0 && (hasTarget(waiting, name) || running[name].Target != ""):
			return wait
		}
	}
	if len(running) > 0 && busy+s.Cores > r.cores {
		return wait
	}
	return begin
}

func hasTarget(stages []stage, name string) bool {
	return slices.ContainsFunc(stages, func(s stage) bool { return s.Target == name })
}

func (r *runner) logf(format string, args ...any) {
	// A terminal that is gone stops no test.
	_, _ = fmt.Fprintf(r.out, time.Now().Format(time.TimeOnly)+" "+format, args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
