package perdure

import (
	"encoding/json"

	"github.com/perdure/perdure/internal/replay"
)

// OrchestrationOption is an option of AddOrchestration.
type OrchestrationOption interface{ applyToOrchestration(o *replay.Orchestration) }

// VersionOption is an option of AddOrchestration, and of calls and starts of other orchestrations.
type VersionOption interface {
	OrchestrationOption
	SubOrchestrationCallOption
}

type versionOption string

func (v versionOption) applyToOrchestration(o *replay.Orchestration) { o.Version = string(v) }

func (v versionOption) applyToSubOrchestrationCall(c *subOrchestrationCall) { c.Version = string(v) }

// WithVersion gives an orchestration a version, such as "1.2.0", so that several can be registered under one name. A new
// instance that asks for none takes the highest: parts between dots are compared as numbers. A running instance stays with
// the version that its first turn took. Without the option the version is "0". An empty version panics.
//
// As an option of a call or start of another orchestration it asks for that very version.
func WithVersion(version string) VersionOption {
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
		ctx := &OrchestrationContext{replay: c, registry: r, name: name}
		return ctx.ending(runOrchestration(ctx, fn, doc))
	}
	r.addOrchestration(o)
	r.orchestrationFunctions.add(fn, name)
}

func runOrchestration[In, Out any](ctx *OrchestrationContext, fn func(*OrchestrationContext, In) (Out, error), doc json.RawMessage) (json.RawMessage, error) {
	var in In
	if err := decode(payload{input, orchestration, ctx.name}, doc, &in); err != nil {
		return nil, err
	}
	out, err := fn(ctx, in)
	if err != nil {
		return nil, err
	}
	return encode(payload{output, orchestration, ctx.name}, out)
}

type failOnNondeterminism struct{}

func (failOnNondeterminism) applyToOrchestration(o *replay.Orchestration) {
	o.FailOnNondeterminism = true
}

// FailOnNondeterminism has an instance fail when its code parts from its history, with a failure of history.TypeNondeterminism.
// Without it the instance is blocked: it is listed with what is wrong, keeps what arrives, and goes on by itself once a build is
// deployed whose code agrees with history.
func FailOnNondeterminism() OrchestrationOption { return failOnNondeterminism{} }
