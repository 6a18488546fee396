package perdure

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/replay"
)

// Registry holds the orchestrations and activities that a program knows by name. Fill it before the program serves:
// adding is not safe for concurrent use, everything else is.
type Registry struct {
	orchestrations map[string][]replay.Orchestration // by name, lowest version first
	activities     map[string]Activity

	activityFunctions, orchestrationFunctions functions
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{
		orchestrations: map[string][]replay.Orchestration{},
		activities:     map[string]Activity{},

		activityFunctions:      functions{},
		orchestrationFunctions: functions{},
	}
}

// Orchestration finds code by name and version; an empty version is the highest registered. It serves dispatchers.
func (r *Registry) Orchestration(name, version string) (replay.Orchestration, bool) {
	versions := r.orchestrations[name]
	if len(versions) == 0 {
		return replay.Orchestration{}, false
	}
	if version == "" {
		return versions[len(versions)-1], true
	}
	i := slices.IndexFunc(versions, func(o replay.Orchestration) bool { return o.Version == version })
	if i < 0 {
		return replay.Orchestration{}, false
	}
	return versions[i], true
}

// Activity finds an activity by name. It serves dispatchers.
func (r *Registry) Activity(name string) (Activity, bool) {
	a, ok := r.activities[name]
	return a, ok
}

// Names are what a registry holds.
type Names struct {
	// Orchestrations has the versions of each name, lowest first.
	Orchestrations map[string][]string `json:"orchestrations"`
	// Activities are in alphabetical order.
	Activities []string `json:"activities"`
}

// Names lists what is registered: what a build of a program can run.
func (r *Registry) Names() Names {
	n := Names{Orchestrations: map[string][]string{}, Activities: slices.Sorted(maps.Keys(r.activities))}
	for name, versions := range r.orchestrations {
		for _, o := range versions {
			n.Orchestrations[name] = append(n.Orchestrations[name], o.Version)
		}
	}
	return n
}

func (r *Registry) addOrchestration(o replay.Orchestration) {
	versions := r.orchestrations[o.Name]
	i, found := slices.BinarySearchFunc(versions, o.Version, func(o replay.Orchestration, v string) int {
		return compareVersions(o.Version, v)
	})
	if found {
		panic(fmt.Sprintf("perdure: orchestration %q version %q registered twice", o.Name, o.Version))
	}
	r.orchestrations[o.Name] = slices.Insert(versions, i, o)
}

func (r *Registry) addActivity(a Activity) {
	if _, found := r.activities[a.Name]; found {
		panic(fmt.Sprintf("perdure: activity %q registered twice", a.Name))
	}
	r.activities[a.Name] = a
}

// mustName panics on a name that history could not hold: what is not UTF-8 would come back from it as another name.
func mustName(kind, name string) {
	if name == "" {
		panic("perdure: " + kind + " with an empty name")
	}
	if !utf8.ValidString(name) {
		panic(fmt.Sprintf("perdure: %s with a name that is not UTF-8: %q", kind, name))
	}
}
