package turns

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// reportAgain is how long a process does not report its build again: the report is one item, which all processes of a build write.
const reportAgain = time.Minute

// buildReport is when a process may report its build again.
type buildReport struct {
	mu   sync.Mutex
	next time.Time
}

// take reports whether a report is due, and takes it.
func (r *buildReport) take(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.next) {
		return false
	}
	r.next = now.Add(reportAgain)
	return true
}

// giveBack has the next request make a report that failed.
func (r *buildReport) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = time.Time{}
}

// Announce implements dispatch.Orchestrator.ReportBuild.
func (o *Orchestrator) Announce(ctx context.Context) error {
	o.report.take(o.options.Clock())
	names := o.registry.Names()
	b := provider.Build{ID: o.options.BuildID, Orchestrations: names.Orchestrations, Activities: names.Activities}
	if err := o.provider.PutBuild(ctx, b); err != nil {
		o.report.giveBack()
		return fmt.Errorf("dispatch: report build %q: %w", b.ID, err)
	}
	return nil
}

// announceAgain reports the build of a process that is asked to. Processes of several builds may stay warm beside one another, as while a canary
// is shifted: the last to take a message is one that gets messages, and the last to start may be of a build that was turned back.
func announceAgain(ctx context.Context, o *Orchestrator) {
	if !o.report.take(o.options.Clock()) {
		return
	}
	if err := o.inTime(ctx, o.Announce); err != nil {
		o.options.Logger.WarnContext(ctx, "build report failed", "event", logevent.BuildReportFailed,
			"buildId", o.options.BuildID, "error", err)
	}
}
