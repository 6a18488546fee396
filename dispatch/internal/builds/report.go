// Package builds reports the builds of orchestrators to the hub.
package builds

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// interval is the minimum time between two reports of a process. All processes of a build write the same item.
const interval = time.Minute

// Reporter reports the build of a process. It is safe for concurrent use.
type Reporter struct {
	base     *intake.Base
	buildID  string
	registry *registry.Registry

	mu   sync.Mutex
	next time.Time
}

// NewReporter returns the reporter of a build.
func NewReporter(b *intake.Base, buildID string, r *registry.Registry) *Reporter {
	return &Reporter{base: b, buildID: buildID, registry: r}
}

// Report reports the build.
func (r *Reporter) Report(ctx context.Context) error {
	r.take(r.base.Clock()) // starts the interval, unless ReportAgain has
	names := r.registry.Names()
	b := provider.Build{ID: r.buildID, Orchestrations: names.Orchestrations, Activities: names.Activities}
	if err := r.base.Provider.PutBuild(ctx, b); err != nil {
		r.reset()
		return fmt.Errorf("dispatch: report build %q: %w", b.ID, err)
	}
	return nil
}

// ReportAgain reports the build of the process on request, unless the last report is recent. Processes of several
// builds may be warm at the same time, for example during a canary deployment. Only a process that receives messages
// receives the request. The process that started last may have a build that was rolled back.
func (r *Reporter) ReportAgain(ctx context.Context) {
	if !r.take(r.base.Clock()) {
		return
	}
	if err := r.Report(ctx); err != nil {
		r.base.Logger.WarnContext(ctx, "build report failed", "event", logevent.BuildReportFailed,
			"buildId", r.buildID, "error", err)
	}
}

// take reports whether a report is due, and if so, starts the interval.
func (r *Reporter) take(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.next) {
		return false
	}
	r.next = now.Add(interval)
	return true
}

// reset makes a report due, because the last one failed.
func (r *Reporter) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = time.Time{}
}
