package perdure_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/registry"
)

func nothing(*perdure.OrchestrationContext, int) (int, error) { return 0, nil }

func TestRegistry_invalidRegistration_panics(t *testing.T) {
	t.Parallel()
	var none func(context.Context, int) (int, error)
	var noBody func(*perdure.OrchestrationContext, int) (int, error)
	for want, mistake := range map[string]func(*perdure.Registry){
		`activity "a" registered twice`: func(r *perdure.Registry) {
			perdure.AddActivity(r, "a", inc)
		},
		`orchestration "o" version "0" registered twice`: func(r *perdure.Registry) {
			perdure.AddOrchestration(r, "o", nothing)
		},
		`orchestration "o" version "1.0" registered twice`: func(r *perdure.Registry) {
			perdure.AddOrchestration(r, "o", nothing, perdure.WithVersion("1.0"))
		},
		"activity: name is empty": func(r *perdure.Registry) {
			perdure.AddActivity(r, "", inc)
		},
		"orchestration: name is empty": func(r *perdure.Registry) {
			perdure.AddOrchestration(r, "", nothing)
		},
		"activity: name is empty (a reference)": func(*perdure.Registry) {
			perdure.DefineActivity[int, int]("")
		},
		"activity: name is empty (no reference)": func(r *perdure.Registry) {
			perdure.ActivityRef[int, int]{}.Register(r, inc)
		},
		"activity: name is empty (a call by none)": func(*perdure.Registry) {
			perdure.ActivityRef[int, int]{}.Call(nil, 1)
		},
		`activity: name "\xff" is not valid UTF-8`: func(r *perdure.Registry) {
			perdure.AddActivity(r, "\xff", inc)
		},
		"OnQueue: name is empty":        func(*perdure.Registry) { perdure.OnQueue("") },
		"WithVersion: version is empty": func(*perdure.Registry) { perdure.WithVersion("") },
		`activity "b": function is nil`: func(r *perdure.Registry) {
			perdure.AddActivity(r, "b", none)
		},
		`orchestration "p": function is nil`: func(r *perdure.Registry) {
			perdure.AddOrchestration(r, "p", noBody)
		},
		`activity "a" registered twice (through reference)`: func(r *perdure.Registry) {
			perdure.DefineActivity[int, int]("a").Register(r, inc)
		},
		`orchestration "o" version "01.0" registered twice`: func(r *perdure.Registry) {
			perdure.AddOrchestration(r, "o", nothing, perdure.WithVersion("01.0"))
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := perdure.NewRegistry()
			perdure.AddActivity(r, "a", inc)
			perdure.AddOrchestration(r, "o", nothing)
			perdure.AddOrchestration(r, "o", nothing, perdure.WithVersion("1.0"))
			want, _, _ := strings.Cut(want, " (")
			defer func() {
				if got, _ := recover().(string); got != "perdure: "+want {
					t.Errorf("got panic %q, want %q", got, want)
				}
			}()
			mistake(r)
		})
	}
}

func TestRegistryOrchestration_emptyVersion_returnsHighest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		versions []string
		highest  string
	}{
		{[]string{"1.9", "1.10", "1.2"}, "1.10"},
		{[]string{"2", "1.99.99"}, "2"},
		{[]string{"1.0", "1", "1.0.0"}, "1.0.0"},
		{[]string{"10", "9", "010.1"}, "010.1"},
		{[]string{"1.a", "1.b"}, "1.b"},
		{[]string{"18446744073709551617", "18446744073709551616"}, "18446744073709551617"},
		{[]string{"0.1"}, "0.1"}, // higher than no version
	} {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "o", nothing)
		for _, v := range tt.versions {
			perdure.AddOrchestration(r, "o", nothing, perdure.WithVersion(v))
		}
		if o, ok := codeOf(r).Orchestration("o", ""); !ok || o.Version != tt.highest || o.Name != "o" {
			t.Errorf("highest version of %q: got %q", tt.versions, o.Version)
		}
		if o, ok := codeOf(r).Orchestration("o", "0"); !ok || o.Version != "0" {
			t.Errorf("%q: registration without a version was not found", tt.versions)
		}
	}
}

func TestRegistry_unknownName_isNotFound(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "o", nothing, perdure.WithVersion("1"))
	for _, k := range [][2]string{{"x", ""}, {"o", "2"}, {"", ""}} {
		if o, ok := codeOf(r).Orchestration(k[0], k[1]); ok {
			t.Errorf("%q: got %+v, want none", k, o)
		}
	}
	if a, ok := codeOf(r).Activity("x"); ok {
		t.Errorf("got %+v, want none", a)
	}
}

func TestRegistryNames_listsOrchestrationsAndActivities(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "b", inc)
	perdure.AddActivity(r, "a", inc, perdure.OnQueue("slow"))
	perdure.AddOrchestration(r, "o", nothing, perdure.WithVersion("1.10"))
	perdure.AddOrchestration(r, "o", nothing, perdure.WithVersion("1.9"))
	want := registry.Names{Orchestrations: map[string][]string{"o": {"1.9", "1.10"}}, Activities: []string{"a", "b"}}
	if got := codeOf(r).Names(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if a, ok := codeOf(r).Activity("a"); !ok || a.Queue != "slow" {
		t.Errorf("got %+v", a)
	}
	if b, ok := codeOf(r).Activity("b"); !ok || b.Queue != perdure.DefaultQueue {
		t.Errorf("got %+v", b)
	}
}
