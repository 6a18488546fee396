package turns

import (
	"context"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// onNewer is what the log says where this build is the first to part from a history, at what a newer build has decided: nothing where it is not so,
// or not known. It turns a canary of that build back: the build before it could not go on with the instances that the canary has had, neither beside
// it nor once it were turned back. What a newer build cannot go on with is its own fault, and counted as such (newlyBlocked).
func (b *blocking) onNewer(ctx context.Context) []any {
	if b.known || b.s.x.state.Blocked.Active || b.why.Type != history.TypeNondeterminism {
		return nil
	}
	own := b.s.o.options.BuildID
	decided := b.decidedBy(b.why.EventID)
	if decided == "" || decided == own {
		return nil
	}
	before, err := b.s.o.provider.ReadBuild(ctx, own)
	if err != nil || before.FirstReportedAt.IsZero() {
		return nil // the alarm of the build's own says it, once all is shifted
	}
	after, err := b.s.o.provider.ReadBuild(ctx, decided)
	if err != nil || !after.FirstReportedAt.After(before.FirstReportedAt) {
		return nil
	}
	return []any{"blockedOnNewer", true, "newerBuild", decided}
}

// decidedBy is the build of the turn that an event of history belongs to; empty where history was not read.
func (b *blocking) decidedBy(eventID int64) string {
	if b.s.x.read == nil {
		return ""
	}
	build := ""
	for _, segment := range b.s.x.read.Segments {
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

// unlessBehind is the end, and none where it is a failure (FailOnNondeterminism) by a build that is behind: the last turn was another's, and that one
// has reported later. So an environment that stays behind in a rollout fails nothing that the build in its place goes on with: it blocks it. By last
// reports, not by first ones: a build that was deployed again is not behind. Where a build has never reported nothing is known of it.
func (b *blocking) unlessBehind(ctx context.Context, end *history.Event) (*history.Event, error) {
	if end == nil || end.Kind != history.OrchestrationFailed {
		return end, nil
	}
	own, last := b.s.o.options.BuildID, lastBuild(b.s.x.read)
	if last == "" || last == own {
		return end, nil
	}
	before, err := b.s.o.provider.ReadBuild(ctx, own)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return nil, err
	}
	after, err := b.s.o.provider.ReadBuild(ctx, last)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return nil, err
	}
	if !before.LastReportedAt.IsZero() && after.LastReportedAt.After(before.LastReportedAt) {
		return nil, nil //nolint:nilnil // no end, as of a build that has none
	}
	return end, nil
}

// lastBuild is the build of the last turn of a history; empty where none says.
func lastBuild(read *provider.Orchestration) (build string) {
	for _, segment := range read.Segments {
		for i := range segment.Events {
			if e := &segment.Events[i]; e.Kind == history.TurnStarted {
				build = e.BuildID
			}
		}
	}
	return build
}
