package perdure

import (
	"encoding/json"
	"fmt"
	"time"

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
// returns, or a panic, fails the instance, but for that of [ContinueAsNew], and the [CancelledError] of an instance that was cancelled,
// wrapped or not: that ends Cancelled. Joined to any other error, as by errors.Join, a cancel is a failure.
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
		ctx := &OrchestrationContext{replay: c, registry: r.code(), name: name}
		return ctx.ending(runOrchestration(ctx, fn, doc))
	}
	r.code().AddOrchestration(o, fn)
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
	return ctx.encode(payload{output, orchestration, ctx.name}, out)
}

// defaultVersion is that of an orchestration registered without one. It is not empty, so that what runs stays bound to it
// when a higher one is added.
const defaultVersion = "0"

// KeepForEver is a retention without an end.
const KeepForEver time.Duration = -1

// minRetention is far below the day that retention is reckoned in.
const minRetention = time.Hour

type retentionOption time.Duration

func (d retentionOption) applyToOrchestration(o *replay.Orchestration) {
	o.Retention = time.Duration(d)
}

// WithRetention has an instance of the orchestration deleted so long after its end, as Client.Purge does, whatever the setting of
// its task hub is for the others; KeepForEver keeps it until it is purged. Without the option it is the hub's setting that counts, which by
// default keeps everything. What counts is the code that the instance ends with.
//
// Of an instance that continues as new, past executions are erased so long after their end, but never sooner than after 30 days:
// until then a late message may still need them. Days end at midnight UTC, and an instance is deleted on the first whole day after: up
// to a day later, never earlier.
//
// It panics when d is less than an hour and not KeepForEver.
func WithRetention(d time.Duration) OrchestrationOption {
	if d != KeepForEver && d < minRetention {
		panic(fmt.Sprintf("perdure: WithRetention of %v: neither KeepForEver nor an hour or more", d))
	}
	return retentionOption(d)
}

type failOnNondeterminism struct{}

func (failOnNondeterminism) applyToOrchestration(o *replay.Orchestration) {
	o.FailOnNondeterminism = true
}

// FailOnNondeterminism has an instance fail when its code parts from its history, with a failure of history.TypeNondeterminism.
// Without it the instance is blocked: it is listed with what is wrong, keeps what arrives, and goes on by itself once a build is
// deployed whose code agrees with history.
//
// In a rollout an environment of the build before, from whose code a newer build has parted, fails nothing that the newer one has had
// the last turn of: that is blocked, until the newer one takes it.
func FailOnNondeterminism() OrchestrationOption { return failOnNondeterminism{} }
