package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"
)

// result is the outcome of a stage.
type result struct {
	stage stage
	// outcome is "ok", "failed", "over budget" or "skipped".
	outcome string
	// detail is the information that the reader needs to fix a stage that is not ok.
	detail string
	took   time.Duration
	cpu    time.Duration
	// slowdown is how much slower than the machine of the budgets this machine is, at least 1.
	slowdown float64
	// idle is the share of processor time that the whole machine did not use while the stage ran.
	idle float64
}

func (r result) failed() bool { return r.outcome != "ok" }

const (
	// tolerance is the factor by which a stage may exceed its budgets.
	tolerance = 1.5
	// idleEnough is the share of idle processor time above which a long duration is due to the stage and not to other
	// processes.
	idleEnough = 0.25
)

// excess describes the budget that the stage exceeds, or is empty. Processor time hardly depends on other processes, so
// its budget always applies. The duration does, so its budget applies only if the machine had idle processor time.
func (r result) excess() string {
	most := func(budget time.Duration) time.Duration {
		return time.Duration(float64(budget) * tolerance * max(1, r.slowdown))
	}
	switch {
	case r.cpu > most(r.stage.CPU):
		return fmt.Sprintf("used %s of processor time; its budget is %s, and its limit on this machine %s",
			seconds(r.cpu), seconds(r.stage.CPU), seconds(most(r.stage.CPU)))
	case r.took > most(r.stage.Time) && r.idle > idleEnough:
		return fmt.Sprintf("took %s; its budget is %s, and its limit on this machine %s",
			seconds(r.took), seconds(r.stage.Time), seconds(most(r.stage.Time)))
	default:
		return ""
	}
}

// report prints the details of what failed, then the table, and returns an error if a stage failed.
func (r *runner) report(results []result, took time.Duration) error {
	failed := 0
	for _, done := range results {
		if done.failed() {
			failed++
			_, _ = fmt.Fprintf(r.out, "\n--- %s %s\n%s\n", done.stage.Target, done.outcome, done.detail)
		}
	}
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprint(w, "\nSTAGE\tTIME\tBUDGET\tCPU\tBUDGET\tIDLE\tSLOWDOWN\tOUTCOME\t\n")
	for _, done := range results {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.0f %%\t%.1f\t%s\t\n",
			done.stage.Target, seconds(done.took), seconds(done.stage.Time),
			seconds(done.cpu), seconds(done.stage.CPU), 100*done.idle, done.slowdown, done.outcome)
	}
	_, _ = fmt.Fprintf(w, "total\t%s\t\t\t\t\t\t\t\n", seconds(took))
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if failed > 0 {
		return errors.New(fmt.Sprint(failed, " of ", len(results), " stages failed"))
	}
	return nil
}
