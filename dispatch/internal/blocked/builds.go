package blocked

import (
	"context"
	"errors"
	"math"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// onNewer returns log attributes if this build is the first one that does not match a history at a decision of a newer
// build. An alarm on them rolls back a canary of the newer build. This build cannot continue the instances of the
// canary during the deployment or after a rollback. A newer build that cannot continue an instance reports newlyBlocked
// itself.
func (d *decision) onNewer(ctx context.Context) []any {
	if d.known || d.x.State().Blocked.Active || d.why.Type != history.TypeNondeterminism {
		return nil
	}
	decidedBy := buildOf(d.x.Read(), d.why.EventID)
	if decidedBy == "" || decidedBy == d.BuildID {
		return nil
	}
	own, err := d.Provider.ReadBuild(ctx, d.BuildID)
	if err != nil || own.FirstReportedAt.IsZero() {
		return nil // the alarm of the newer build reports it when the deployment is complete
	}
	newer, err := d.Provider.ReadBuild(ctx, decidedBy)
	if err != nil || !newer.FirstReportedAt.After(own.FirstReportedAt) {
		return nil
	}
	return []any{"blockedOnNewer", true, "newerBuild", decidedBy}
}

// unlessOutdated returns an end. It returns nil if the end is a failure (FailOnNondeterminism) and this build is
// outdated. A build is outdated if another build ran the last turn and has the later last report. An environment that
// still has the old build during a deployment blocks instances that the new build can continue, and does not fail them.
// First reports do not count, so a build that was deployed again is not outdated. A build that has never reported is
// unknown.
func (d *decision) unlessOutdated(ctx context.Context, end *history.Event) (*history.Event, error) {
	if end == nil || end.Kind != history.OrchestrationFailed {
		return end, nil
	}
	last := buildOf(d.x.Read(), math.MaxInt64)
	if last == "" || last == d.BuildID {
		return end, nil
	}
	own, err := d.Provider.ReadBuild(ctx, d.BuildID)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return nil, err
	}
	newer, err := d.Provider.ReadBuild(ctx, last)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return nil, err
	}
	if !own.LastReportedAt.IsZero() && newer.LastReportedAt.After(own.LastReportedAt) {
		return nil, nil //nolint:nilnil // no end
	}
	return end, nil
}

// buildOf returns the build of the turn of an event, or of the last turn if the event is later. It is empty if there is
// none, or if the history was not read.
func buildOf(read *provider.Orchestration, eventID int64) (build string) {
	if read == nil {
		return ""
	}
	for _, segment := range read.Segments {
		for i := range segment.Events {
			e := &segment.Events[i]
			if e.Kind == history.TurnStarted {
				build = e.BuildID
			}
			if e.ID >= eventID {
				return build
			}
		}
	}
	return build
}
