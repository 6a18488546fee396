// Package registry holds the code that a program knows by name. It is what a *perdure.Registry is to those who run that code: a dispatcher
// converts the one to the other. Authors of orchestrations and activities only add to it, by the functions of package perdure.
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

// Registry holds orchestrations by name and version, and activities by name. Adding is not safe for concurrent use; everything else is.
type Registry struct {
	orchestrations map[string][]replay.Orchestration // by name, lowest version first
	activities     map[string]Activity

	activityFunctions, orchestrationFunctions functions
}

// Activity is a registered activity.
type Activity struct {
	Name, Queue string
	// CancelPollInterval is how often its worker looks whether it is cancelled while it runs; 0: as often as the worker does.
	CancelPollInterval time.Duration
	// Inline: calls of it run in the function that decides them, where they can.
	Inline bool
	// Out is the type of its result; nil where nobody says so.
	Out reflect.Type
	// Run decodes the input, runs the function and encodes its result. A panic is a failure of history.TypePanic whose
	// message ends with the stack. A function that calls runtime.Goexit ends the calling goroutine.
	Run func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure)
}

// TypePending is the type of the failure that Activity.Run returns for perdure.ErrPending. It is in no history.
const TypePending = "perdure:pending"

// New makes an empty registry.
func New() *Registry {
	return &Registry{
		orchestrations: map[string][]replay.Orchestration{},
		activities:     map[string]Activity{},

		activityFunctions:      functions{},
		orchestrationFunctions: functions{},
	}
}

// AddOrchestration adds code that fn was written as. It panics when the name is taken in that version.
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

// AddActivity adds an activity that fn was written as. It panics when the name is taken.
func (r *Registry) AddActivity(a Activity, fn any) {
	if _, found := r.activities[a.Name]; found {
		panic(fmt.Sprintf("perdure: activity %q registered twice", a.Name))
	}
	r.activities[a.Name] = a
	r.activityFunctions.add(fn, a.Name)
}

// WithActivities returns a registry of the same orchestrations, and of what wrap makes of each activity. The two do not share later additions.
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

// Orchestration finds code by name and version; an empty version is the highest registered.
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

// Activity finds an activity by name.
func (r *Registry) Activity(name string) (Activity, bool) {
	a, ok := r.activities[name]
	return a, ok
}

// OrchestrationOf finds the name that a function was added with. Where that cannot be told, why says so.
func (r *Registry) OrchestrationOf(fn any) (name, why string) {
	return r.orchestrationFunctions.name("orchestration", "by name", fn)
}

// ActivityOf finds the activity that a function was added as. Where that cannot be told, why says so, and the activity is zero.
func (r *Registry) ActivityOf(fn any) (a Activity, why string) {
	name, why := r.activityFunctions.name("activity", "by name or by reference", fn)
	return r.activities[name], why
}

// Names are what a registry holds.
type Names struct {
	// Orchestrations has the versions of each name, lowest first.
	Orchestrations map[string][]string
	// Activities are in alphabetical order.
	Activities []string
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
