package perdure

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/usercode"
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

// WithVersion sets the version of an orchestration, such as "1.2.0", so that several versions can be registered under
// one name. A new instance runs the highest version unless it was started with a version. The numbers between dots are
// compared numerically. A running instance keeps the version of its first turn. The default version is "0". WithVersion
// panics if version is empty.
//
// As an option of a call or start of another orchestration, WithVersion selects exactly that version.
func WithVersion(version string) VersionOption {
	if version == "" {
		panic("perdure: WithVersion: version is empty")
	}
	return versionOption(version)
}

// AddOrchestration registers fn as the orchestration of that name. It panics if name is empty or not valid UTF-8, if
// the name and version are already registered, or if fn is nil.
//
// fn must be deterministic (see the package overview). If fn returns an error or panics, the instance fails, with two
// exceptions:
//
//   - If fn returns the error of [ContinueAsNew], the instance continues as new.
//   - If the instance was cancelled and fn returns its [CancelledError], even wrapped, the instance ends as Cancelled.
//     A CancelledError that is joined with another error is a failure.
func AddOrchestration[In, Out any](
	r *Registry, name string, fn func(*OrchestrationContext, In) (Out, error), opts ...OrchestrationOption,
) {
	names.MustDefine("orchestration", name, fn != nil)
	o := replay.Orchestration{Name: name, Version: defaultVersion}
	for _, opt := range opts {
		opt.applyToOrchestration(&o)
	}
	o.Body = func(c *replay.Context, doc json.RawMessage) replay.Ending {
		ctx := &OrchestrationContext{replay: c, registry: r.code(), name: name}
		return ctx.ending(usercode.Orchestration(&adapter, ctx.execution(), fn, doc))
	}
	r.code().AddOrchestration(o, fn)
}

// defaultVersion is the version of an orchestration that is registered without a version. It is not empty, so that
// running instances keep it when a higher version is added.
const defaultVersion = "0"

// RetainForever is a retention without an end.
const RetainForever time.Duration = -1

type orchestrationOption func(o *replay.Orchestration)

func (set orchestrationOption) applyToOrchestration(o *replay.Orchestration) { set(o) }

// WithRetention sets the time for which an ended instance of the orchestration is kept. After that time the instance is
// purged as by Client.Purge. The option overrides the hub's retention, which keeps instances forever by default.
// RetainForever keeps the instance until it is purged. An instance uses the option of the build that ends it.
// WithRetention panics if d is less than one hour and not RetainForever.
//
// If an instance continues as new, its past executions are deleted after the same time, but not before 30 days. Days
// end at midnight UTC. An instance is deleted on the first whole day after its retention: up to one day late, and never
// early.
func WithRetention(d time.Duration) OrchestrationOption {
	if d != RetainForever {
		names.MustRetain("WithRetention", d)
	}
	return orchestrationOption(func(o *replay.Orchestration) { o.Retention = d })
}

// FailOnNondeterminism fails an instance whose code deviates from its history, with a failure of type
// history.TypeNondeterminism. Without the option the instance is blocked. Its status shows the reason, and its inputs
// are parked. It continues when a build is deployed whose code matches the history.
//
// During a rollout, a process that runs the previous build does not fail an instance whose last turn ran on the new
// build. The instance is blocked until a process with the new build runs it.
func FailOnNondeterminism() OrchestrationOption {
	return orchestrationOption(func(o *replay.Orchestration) { o.FailOnNondeterminism = true })
}
