package versions

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Versions besides 1. In the highest version, 10 is more than 2.
const middle, highest = "1.2", "1.10"

func versionScenarios() []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "VersionsInParallel", Register: kit.Run(callVersions, addVersions("Which")),
			Input: []string{"1", middle, highest, ""},
			Check: kit.Returns([]string{"1", middle, highest, highest}),
		},
		{
			Name: "StartOfAVersion", Register: addAsVersions, Start: []client.StartOption{client.WithVersion(middle)},
			Check: kit.Returns(middle),
		},
		{Name: "StartOfTheHighestVersion", Register: addAsVersions, Check: kit.Returns(highest)},
	}
}

func addAsVersions(r *perdure.Registry, name string) { addVersions(name)(r) }

// addVersions adds versions of an orchestration that return their version.
func addVersions(name string) func(r *perdure.Registry) {
	return func(r *perdure.Registry) {
		for _, v := range []string{highest, "1", middle} {
			perdure.AddOrchestration(r, name, func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
				return perdure.CallActivity(ctx, kit.Echo, v).Await(ctx)
			}, perdure.WithVersion(v))
		}
	}
}

// callVersions runs versions of an orchestration concurrently. An empty version selects the highest one.
func callVersions(ctx *perdure.OrchestrationContext, versions []string) (got []string, err error) {
	var fs []*perdure.Future[string]
	for _, v := range versions {
		var opts []perdure.SubOrchestrationCallOption
		if v != "" {
			opts = append(opts, perdure.WithVersion(v))
		}
		fs = append(fs, perdure.CallSubOrchestrationByName[string](ctx, "Which", nil, opts...))
	}
	for _, f := range fs {
		v, err := f.Await(ctx)
		if err != nil {
			return got, fmt.Errorf("after %q: %w", got, err)
		}
		got = append(got, v)
	}
	return got, nil
}
