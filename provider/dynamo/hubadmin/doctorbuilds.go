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
	// maxChecked is the number of instances of each status that are checked against the deployed build.
	maxChecked = 1000
	// checkTime limits the time of this check. Skipping a million ended instances takes half a minute.
	checkTime = 2 * time.Minute
	// checkedResource is the resource that findings of this check name.
	checkedResource = "instances"
)

func isMissingGroup(err error) bool {
	_, none := errors.AsType[*schedulertypes.ResourceNotFoundException](err)
	return none
}

// workers reports queues with work items and without a worker.
func (x *examination) workers(ctx context.Context) {
	if x.Instances == nil {
		return
	}
	waiting, err := x.Instances.CountWorkItems(ctx)
	if err != nil {
		x.reportUnread("work items", err)
		return
	}
	reports, err := x.Instances.ReadWorkers(ctx)
	if err != nil {
		x.reportUnread("workers", err)
		return
	}
	for _, queue := range slices.Sorted(maps.Keys(waiting)) {
		r, reported := reports[queue]
		if waiting[queue] == 0 || !r.Missing(x.Now()) {
			continue
		}
		what := fmt.Sprintf("about %d work items are waiting, and no worker has ever reported", waiting[queue])
		if reported {
			what = fmt.Sprintf("about %d work items are waiting, and the last worker (build %s) reported %v ago",
				waiting[queue], r.BuildID, x.Now().Sub(r.SeenAt).Round(time.Minute))
		}
		x.report("queue "+queue, what, "activities wait, and their work items expire after 14 days",
			"deploy a worker for the queue, or read the worker's log for a failed start or a missing permission")
	}
}

// builds reports instances whose orchestration is not in the deployed build.
func (x *examination) builds(ctx context.Context) {
	const of = "build"
	if x.Instances == nil {
		return
	}
	build, err := x.Instances.LatestBuild(ctx)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return // no instance was ever started
	case err != nil:
		x.reportUnread(of, err)
		return
	}

	unknown := map[string]int{}
	limited, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	for _, status := range []provider.RuntimeStatus{
		provider.StatusRunning, provider.StatusPending, provider.StatusBlocked, provider.StatusPaused,
		provider.StatusCancelling,
	} {
		err := x.eachInstance(limited, status, func(in *provider.Instance) {
			if !registers(&build, in.Name, in.Version) {
				unknown[fmt.Sprintf("%q version %q", in.Name, in.Version)]++
			}
		})
		if limited.Err() != nil && ctx.Err() == nil {
			x.findings = append(x.findings, Finding{
				Unverified: true, Resource: checkedResource,
				Problem: fmt.Sprintf("the hub has too many ended instances to find the others within %v",
					checkTime),
				Fix: "run perdure versions, which counts running instances by orchestration and version",
			})
			break
		}
		if err != nil {
			x.reportUnread(checkedResource, err)
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		x.report(of+" "+build.ID,
			fmt.Sprintf("the orchestration %s is not registered, and %d of its instances have not ended",
				name, unknown[name]),
			"these instances are blocked at their next turn",
			"deploy a build that registers the orchestration, in addition to the new version")
	}
}

// eachInstance calls check with the latest instances of a status. A page can be empty and still have a cursor.
func (x *examination) eachInstance(
	ctx context.Context, status provider.RuntimeStatus, check func(in *provider.Instance),
) error {
	q := provider.ListQuery{Status: status, Limit: maxChecked}
	for {
		page, err := x.Instances.ListInstances(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Instances {
			check(&page.Instances[i])
		}
		q.Limit -= len(page.Instances)
		if q.Cursor = page.NextCursor; q.Cursor == "" || q.Limit == 0 {
			return nil
		}
	}
}

// registers reports whether a build registers an orchestration. An empty version matches any version.
func registers(b *provider.Build, name, version string) bool {
	versions, ok := b.Orchestrations[name]
	return ok && (version == "" || slices.Contains(versions, version))
}
