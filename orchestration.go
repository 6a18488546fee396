package perdure

import (
	"encoding/json"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// OrchestrationOption is an option of AddOrchestration.
type OrchestrationOption interface{ applyToOrchestration(o *replay.Orchestration) }

type versionOption string

func (v versionOption) applyToOrchestration(o *replay.Orchestration) { o.Version = string(v) }

// WithVersion gives an orchestration a version, such as "1.2.0", so that several can be registered under one name. A new
// instance that asks for none takes the highest: parts between dots are compared as numbers. A running instance stays with
// the version that its first turn took. Without the option the version is "0". An empty version panics.
func WithVersion(version string) OrchestrationOption {
	if version == "" {
		panic("perdure: WithVersion with an empty version")
	}
	return versionOption(version)
}

// AddOrchestration registers an orchestration. It panics when the name is empty, fn is nil, or the name is taken in that version.
//
// fn must decide the same each time it is run over the same history; the package comment says how. An error that it
// returns, or a panic, fails the instance.
func AddOrchestration[In, Out any](r *Registry, name string, fn func(*OrchestrationContext, In) (Out, error), opts ...OrchestrationOption) {
	mustName("orchestration", name)
	if fn == nil {
		panic("perdure: orchestration " + name + ": nil function")
	}
	o := replay.Orchestration{Name: name, Version: defaultVersion}
	for _, opt := range opts {
		opt.applyToOrchestration(&o)
	}
	o.Body = func(c *replay.Context, doc json.RawMessage) replay.Ending {
		return ending(runOrchestration(&OrchestrationContext{replay: c, registry: r, name: name}, name, fn, doc))
	}
	r.addOrchestration(o)
}

func ending(out json.RawMessage, err error) replay.Ending {
	if err == nil {
		return replay.Ending{Kind: history.OrchestrationCompleted, Output: out}
	}
	return replay.Ending{Kind: history.OrchestrationFailed, Error: failureOf(err)}
}

func runOrchestration[In, Out any](ctx *OrchestrationContext, name string, fn func(*OrchestrationContext, In) (Out, error), doc json.RawMessage) (json.RawMessage, error) {
	var in In
	if err := decode(payload{input, orchestration, name}, doc, &in); err != nil {
		return nil, err
	}
	out, err := fn(ctx, in)
	if err != nil {
		return nil, err
	}
	return encode(payload{output, orchestration, name}, out)
}
