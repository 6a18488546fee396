package perduretest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay"
)

// vigilant is a log's handler that fails the test for what a deployed hub can only log: an orchestration that is not deterministic, that blocks on
// something other than a future, or that uses its context on a goroutine of its own, and an activity that ignores the end of its context.
type vigilant struct {
	slog.Handler

	env   *Env
	attrs []slog.Attr
}

// Enabled reports whether the wrapped handler is enabled for the level, or whether the level is one that is checked.
func (v vigilant) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || v.Handler.Enabled(ctx, level)
}

// Handle checks a record and passes it to the wrapped handler.
func (v vigilant) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		v.look(&r)
	}
	if !v.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return v.Handler.Handle(ctx, r) //nolint:wrapcheck // it is the handler's
}

func (v vigilant) look(r *slog.Record) {
	of := map[string]slog.Value{}
	note := func(a slog.Attr) bool {
		of[a.Key] = a.Value
		return true
	}
	for _, a := range v.attrs {
		note(a)
	}
	r.Attrs(note)

	for _, value := range of {
		if err, ok := value.Any().(error); ok {
			v.lookAt(err)
		}
	}
	if of["event"].String() == logevent.ActivityAbandoned && !v.env.leaving.Load() {
		v.lookAtLeak(of["activity"].String(), of["instance"].String())
	}
}

// lookAt fails the test for what no code of a deployed hub should do. A build that was deployed midway may well not fit what is there.
func (v vigilant) lookAt(err error) {
	if f, ok := errors.AsType[*replay.ForeignGoroutineError](err); ok {
		lost := ""
		if f.Late {
			lost = " after its turn had ended, so that its calls are lost"
		}
		v.faultf("foreign "+f.InstanceID, "instance %q: orchestration context or future used on another goroutine%s, "+
			"in %s",
			f.InstanceID, lost, replay.Where(f.Stack))
	}
	if b, ok := errors.AsType[*replay.BlockedOutsideError](err); ok {
		v.faultf("blocked "+b.InstanceID, "instance %q: orchestration hangs: it blocks on something other than a "+
			"future or never ends, in %s",
			b.InstanceID, replay.Where(b.Stack))
	}
	if n, ok := errors.AsType[*replay.NondeterminismError](err); ok && v.env.builds == 0 {
		v.faultf("nondeterminism "+n.InstanceID, "%v", n)
	}
}

func (v vigilant) lookAtLeak(activity, instanceID string) {
	for _, c := range v.env.log.running() {
		if c.Activity == activity && c.InstanceID == instanceID {
			v.faultf(fmt.Sprintf("leak %s %s %d", activity, instanceID, c.ActivityID),
				"activity %q of instance %q ignores its cancelled context, in %s",
				activity, instanceID, v.env.watch.whereabouts(c.goroutine))
		}
	}
}

// faultf fails the test for something that is wrong, once.
func (v vigilant) faultf(what, format string, args ...any) {
	if _, known := v.env.faults.LoadOrStore(what, true); !known {
		v.env.errorf("perduretest: "+format, args...)
	}
}

// WithAttrs implements slog.Handler.
func (v vigilant) WithAttrs(attrs []slog.Attr) slog.Handler {
	return vigilant{v.Handler.WithAttrs(attrs), v.env, slices.Concat(v.attrs, attrs)}
}

// WithGroup implements slog.Handler.
func (v vigilant) WithGroup(name string) slog.Handler {
	return vigilant{v.Handler.WithGroup(name), v.env, v.attrs}
}
