// Package registry holds the orchestrations and activities of a program by name. A dispatcher converts a
// *perdure.Registry to this Registry to run them. Users of perdure only add to it, with the functions of package
// perdure.
package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// Registry holds orchestrations by name and version, and activities by name. Adding to it is not safe for concurrent
// use. All other methods are.
type Registry struct {
	orchestrations map[string][]replay.Orchestration // by name, lowest version first
	activities     map[string]Activity

	activityFunctions, orchestrationFunctions functions
}

// Activity is a registered activity.
type Activity struct {
	Name, Queue string
	// CancelPollInterval is the interval at which the worker checks whether the running activity is cancelled. 0 means
	// the worker's interval.
	CancelPollInterval time.Duration
	// Inline means that calls of the activity run in the orchestrator that schedules them, if possible.
	Inline bool
	// Out is the type of the result, or nil if unknown.
	Out reflect.Type
	// Run decodes the input, runs the function and encodes its result. A panic is a failure of history.TypePanic whose
	// message ends with the stack. A function that calls runtime.Goexit ends the calling goroutine.
	Run func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure)
}

// TypePending is the type of the failure that Activity.Run returns for perdure.ErrPending. Histories do not contain it.
const TypePending = "perdure:pending"

// New returns an empty registry.
func New() *Registry {
	return &Registry{
		orchestrations: map[string][]replay.Orchestration{},
		activities:     map[string]Activity{},

		activityFunctions:      functions{},
		orchestrationFunctions: functions{},
	}
}

// AddOrchestration adds an orchestration and its user function fn. It panics if this name and version are already
// registered.
func (r *Registry) AddOrchestration(o replay.Orchestration, fn any) {
	versions := r.orchestrations[o.Name]
	i, found := slices.BinarySearchFunc(versions, o.Version, func(o replay.Orchestration, v string) int {
		return compareVersions(o.Version, v)
	})
	if found {
		panic(fmt.Sprintf("perdure: orchestration %q version %q registered twice", o.Name, o.Version))
	}
	r.orchestrations[o.Name] = slices.Insert(versions, i, o)
	r.orchestrationFunctions.add(fn, o.Name)
}

// AddActivity adds an activity and its user function fn. It panics if the name is already registered.
func (r *Registry) AddActivity(a Activity, fn any) {
	if _, found := r.activities[a.Name]; found {
		panic(fmt.Sprintf("perdure: activity %q registered twice", a.Name))
	}
	r.activities[a.Name] = a
	r.activityFunctions.add(fn, a.Name)
}

// WithActivities returns a copy of the registry whose activities are replaced by the results of wrap. Later additions
// to one registry do not change the other.
func (r *Registry) WithActivities(wrap func(Activity) Activity) *Registry {
	c := New()
	maps.Copy(c.orchestrations, r.orchestrations)
	maps.Copy(c.orchestrationFunctions, r.orchestrationFunctions)
	maps.Copy(c.activityFunctions, r.activityFunctions)
	for name, a := range r.activities {
		c.activities[name] = wrap(a)
	}
	return c
}

// Orchestration returns an orchestration by name and version. An empty version selects the highest registered one.
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

// Activity returns an activity by name.
func (r *Registry) Activity(name string) (Activity, bool) {
	a, ok := r.activities[name]
	return a, ok
}

// OrchestrationOf returns the name with which a function was registered. If the name cannot be determined, why is the
// reason.
func (r *Registry) OrchestrationOf(fn any) (name, why string) {
	return r.orchestrationFunctions.name("orchestration", "by name", fn)
}

// ActivityOf returns the activity with which a function was registered. If it cannot be determined, why is the reason
// and the activity is zero.
func (r *Registry) ActivityOf(fn any) (a Activity, why string) {
	name, why := r.activityFunctions.name("activity", "by name or by reference", fn)
	return r.activities[name], why
}

// Names holds the names of a registry.
type Names struct {
	// Orchestrations holds the versions of each name, lowest first.
	Orchestrations map[string][]string
	// Activities holds the names of activities in alphabetical order.
	Activities []string
}

// Names returns the registered names.
func (r *Registry) Names() Names {
	n := Names{Orchestrations: map[string][]string{}, Activities: slices.Sorted(maps.Keys(r.activities))}
	for name, versions := range r.orchestrations {
		for _, o := range versions {
			n.Orchestrations[name] = append(n.Orchestrations[name], o.Version)
		}
	}
	return n
}
