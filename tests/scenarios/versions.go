package scenarios

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// The versions beside 1: in the highest, 10 is more than 2.
const middle, highest = "1.2", "1.10"

func versions() []Scenario {
	return []Scenario{
		{
			Name: "VersionsSideBySide", Register: body(callsVersions, addVersions("Which")),
			Input: []string{"1", middle, highest, ""},
			Check: gives([]string{"1", middle, highest, highest}),
		},
		{
			Name: "StartOfAVersion", Register: addAsVersions, Start: []client.StartOption{client.WithVersion(middle)},
			Check: gives(middle),
		},
		{Name: "StartOfTheHighestVersion", Register: addAsVersions, Check: gives(highest)},
	}
}

func addAsVersions(r *perdure.Registry, name string) { addVersions(name)(r) }

// addVersions adds an orchestration in versions that each say which they are, after a while.
func addVersions(name string) func(r *perdure.Registry) {
	return func(r *perdure.Registry) {
		for _, v := range []string{highest, "1", middle} {
			perdure.AddOrchestration(r, name, func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
				return perdure.CallActivity(ctx, echo, v).Await(ctx)
			}, perdure.WithVersion(v))
		}
	}
}

// callsVersions runs versions of one orchestration side by side; an empty one is the highest.
func callsVersions(ctx *perdure.OrchestrationContext, versions []string) (got []string, err error) {
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
