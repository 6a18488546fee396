package memhub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// builds stores the reports of builds.
type builds struct {
	*base

	inbox         *inbox
	reported      []provider.Build // in the order of their last reports
	wakeRequested time.Time        // the last request for a report
}

// PutBuild implements provider.Orchestrations.
func (st *builds) PutBuild(ctx context.Context, b provider.Build) error {
	return st.call(ctx, func() error {
		b.FirstReportedAt, b.LastReportedAt = st.time(), st.time()
		if i := slices.IndexFunc(st.reported, func(o provider.Build) bool { return o.ID == b.ID }); i >= 0 {
			b.FirstReportedAt = st.reported[i].FirstReportedAt
			st.reported = slices.Delete(st.reported, i, i+1)
		}
		st.reported = append(st.reported, b)
		return nil
	})
}

// ReadBuild implements provider.Orchestrations.
func (st *builds) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	return callFor(ctx, st.base, func() (provider.Build, error) {
		for i := range st.reported {
			if st.reported[i].ID == id {
				return st.reported[i], nil
			}
		}
		return provider.Build{}, fmt.Errorf("fake: build %q: %w", id, provider.ErrNotFound)
	})
}

// registered reports whether a build has the orchestration. Before the first report, every name is registered, because
// the start causes that report.
func (st *builds) registered(name, version string) bool {
	for i := range st.reported {
		versions, known := st.reported[i].Orchestrations[name]
		if known && (version == "" || slices.Contains(versions, version)) {
			return true
		}
	}
	return len(st.reported) == 0
}

// requestReport requests a report of the build, at most once a minute.
func (st *builds) requestReport() {
	if now := st.now(); now.Sub(st.wakeRequested) >= time.Minute {
		st.wakeRequested = now
		st.inbox.send(provider.Message{Kind: provider.MessageWake, InstanceID: provider.ReportBuildInstanceID})
	}
}
