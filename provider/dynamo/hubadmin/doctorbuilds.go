package hubadmin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/perdure/perdure/provider"
)

const (
	// workerSilence is after how long a queue with work is taken to have no worker: workers report every five minutes.
	workerSilence = 10 * time.Minute
	// livingLookedAt is how many living instances of a status are held against the build that is deployed.
	livingLookedAt = 1000
	// livingLookFor bounds the time of that: among a million that are over it takes half a minute.
	livingLookFor = 2 * time.Minute
	// livingOf is what a finding about that is of.
	livingOf = "instances"
)

func isNoGroup(err error) bool {
	_, none := errors.AsType[*schedulertypes.ResourceNotFoundException](err)
	return none
}

// workers looks for work that no worker takes.
func (x *examination) workers(ctx context.Context) {
	if x.Instances == nil {
		return
	}
	waiting, err := x.Instances.CountWorkItems(ctx)
	if err != nil {
		x.unread("work items", err)
		return
	}
	reports, err := x.Instances.ReadWorkers(ctx)
	if err != nil {
		x.unread("workers", err)
		return
	}
	for _, queue := range slices.Sorted(maps.Keys(waiting)) {
		r, reported := reports[queue]
		silent := x.Now().Sub(r.SeenAt)
		if waiting[queue] == 0 || reported && silent < workerSilence {
			continue
		}
		what := fmt.Sprintf("about %d work items wait, and no worker of it has ever been heard of", waiting[queue])
		if reported {
			what = fmt.Sprintf("about %d work items wait, and no worker of it has been heard of for %v (build %s)", waiting[queue], silent.Round(time.Minute), r.BuildID)
		}
		x.wrong("queue "+queue, what, "activities wait, for 14 days at most", "read the log of its worker: it dies at init, may not read the queue, or is not there")
	}
}

// builds holds living instances against the build that is deployed.
func (x *examination) builds(ctx context.Context) {
	const of = "build"
	if x.Instances == nil {
		return
	}
	build, err := x.Instances.LatestBuild(ctx)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return // nothing was ever started
	case err != nil:
		x.unread(of, err)
		return
	}

	unknown := map[string]int{}
	limited, stop := context.WithTimeout(ctx, livingLookFor)
	defer stop()
	for _, status := range []provider.RuntimeStatus{provider.StatusRunning, provider.StatusPending, provider.StatusBlocked, provider.StatusPaused, provider.StatusCancelling} {
		err := x.living(limited, status, func(in *provider.Instance) {
			if !knows(&build, in.Name, in.Version) {
				unknown[fmt.Sprintf("%q version %q", in.Name, in.Version)]++
			}
		})
		if limited.Err() != nil && ctx.Err() == nil {
			x.findings = append(x.findings, Finding{
				Unread: true, Of: livingOf, What: fmt.Sprintf("among all that are over, %v are too short to look for the latest that live", livingLookFor),
				Do: "perdure versions, which counts what lives by orchestration and version",
			})
			break
		}
		if err != nil {
			x.unread(livingOf, err)
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		x.wrong(of+" "+build.ID, fmt.Sprintf("it does not have the orchestration %s, of which %d instances live", name, unknown[name]), "they are blocked at their next turn", "deploy a build that has it, beside the new version")
	}
}

// living calls look with the latest instances of a status. A page may be empty while its cursor leads on: most of what was read may be over.
func (x *examination) living(ctx context.Context, status provider.RuntimeStatus, look func(in *provider.Instance)) error {
	q := provider.Query{Status: status, Limit: livingLookedAt}
	for {
		page, err := x.Instances.ListInstances(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Instances {
			look(&page.Instances[i])
		}
		q.Limit -= len(page.Instances)
		if q.Cursor = page.NextCursor; q.Cursor == "" || q.Limit == 0 {
			return nil
		}
	}
}

// knows reports whether a build has an orchestration. An instance without a version takes any.
func knows(b *provider.Build, name, version string) bool {
	versions, ok := b.Orchestrations[name]
	return ok && (version == "" || slices.Contains(versions, version))
}
