package messages

import (
	"strings"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

func unknownOrchestration(f *kit.Fixture) {
	f.Must(f.Provider.PutBuild(f.Ctx(), provider.Build{
		ID: "b", Orchestrations: map[string][]string{kit.Refund: {kit.V1}},
	}))
	_, err := f.Provider.StartOrchestration(f.Ctx(), kit.StartOf("a"))
	f.WantErrorIs(err, provider.ErrUnknownOrchestration)
	if err != nil && !strings.Contains(err.Error(), `"order"`) {
		f.T.Errorf("the error does not name the orchestration: %v", err)
	}
	_, err = f.Provider.ReadInstance(f.Ctx(), "a")
	f.WantErrorIs(err, provider.ErrNotFound)
}

func unknownVersion(f *kit.Fixture) {
	f.Must(f.Provider.PutBuild(f.Ctx(), provider.Build{
		ID: "b1", Orchestrations: map[string][]string{kit.Order: {kit.V1}},
	}))
	f.Must(f.Provider.PutBuild(f.Ctx(), provider.Build{
		ID: "b2", Orchestrations: map[string][]string{kit.Order: {"2.0.0"}},
	}))
	for version, want := range map[string]error{
		"": nil, kit.V1: nil, "2.0.0": nil, "3.0.0": provider.ErrUnknownOrchestration,
		"1.0": provider.ErrUnknownOrchestration,
	} {
		s := kit.StartOf("version " + version)
		s.Version = version
		if _, err := f.Provider.StartOrchestration(f.Ctx(), s); want == nil {
			f.Must(err)
		} else {
			f.WantErrorIs(err, want)
		}
	}
}

func beforeAnyBuild(f *kit.Fixture) {
	for _, id := range []string{"a", "b"} {
		f.Start(id)
		f.WantStatus(id, provider.StatusPending)
	}
}

func newBuild(f *kit.Fixture) {
	f.Must(f.Provider.PutBuild(f.Ctx(), provider.Build{
		ID: "old", Orchestrations: map[string][]string{kit.Refund: {kit.V1}},
	}))
	_, err := f.Provider.StartOrchestration(f.Ctx(), kit.StartOf("a"))
	f.WantErrorIs(err, provider.ErrUnknownOrchestration)
	f.Must(f.Provider.PutBuild(f.Ctx(), provider.Build{
		ID: "newer", Orchestrations: map[string][]string{kit.Order: {kit.V1}},
	}))
	f.Start("a")
	s := kit.StartOf("r")
	s.Name = kit.Refund // an orchestration that only an older build knows still starts
	_, err = f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
}

func firstReport(f *kit.Fixture) {
	f.ReportBuilds("b1", "b2", "b1")
	one, err := f.Provider.ReadBuild(f.Ctx(), "b1")
	f.Must(err)
	two, err := f.Provider.ReadBuild(f.Ctx(), "b2")
	f.Must(err)
	if !one.FirstReportedAt.Before(two.FirstReportedAt) || !one.LastReportedAt.After(two.LastReportedAt) ||
		two.LastReportedAt.Before(two.FirstReportedAt) || one.ID != "b1" || len(one.Orchestrations[kit.Order]) != 1 {
		f.T.Errorf("build b1, reported first and again last: got %+v, %+v", one, two)
	}
	_, err = f.Provider.ReadBuild(f.Ctx(), "b3")
	f.WantErrorIs(err, provider.ErrNotFound)
}

func repeatedBuild(f *kit.Fixture) {
	b := provider.Build{
		ID: "b", Orchestrations: map[string][]string{kit.Order: {kit.V1}}, Activities: []string{kit.Pack},
	}
	for range 3 {
		f.Must(f.Provider.PutBuild(f.Ctx(), b))
	}
	f.Start("a")
}
