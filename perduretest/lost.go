package perduretest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/perdure/perdure/internal/replay"
)

// vigilant is a log's handler that fails the test when a call of an orchestration is lost: one on a goroutine of its own, after its turn.
// Outside of tests it can only be logged.
type vigilant struct {
	slog.Handler

	t *testing.T
}

// Enabled reports whether the handler that it stands before wants a record, or it does itself.
func (v vigilant) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || v.Handler.Enabled(ctx, level)
}

// Handle looks at a record and hands it on.
func (v vigilant) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if lost, ok := a.Value.Any().(*replay.ForeignGoroutineError); ok && lost.Late {
			v.t.Errorf("perduretest: %s: %v", r.Message, lost)
		}
		return true
	})
	if !v.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return v.Handler.Handle(ctx, r) //nolint:wrapcheck // it is the handler's
}

// WithAttrs keeps the watch.
func (v vigilant) WithAttrs(attrs []slog.Attr) slog.Handler {
	return vigilant{v.Handler.WithAttrs(attrs), v.t}
}

// WithGroup keeps the watch.
func (v vigilant) WithGroup(name string) slog.Handler {
	return vigilant{v.Handler.WithGroup(name), v.t}
}
