package replay

import (
	"context"
	"log/slog"

	"github.com/perdure/perdure/internal/replay/coroutine"
)

// newLogger returns the orchestration's logger: that of the options, silent while the code only repeats itself.
func newLogger(x *execution) *slog.Logger {
	inner := slog.DiscardHandler
	if x.options.Logger != nil {
		inner = x.options.Logger.Handler()
	}
	return slog.New(liveHandler{inner, x}).With(
		"orchestration", x.orchestration.Name, "instance", x.options.InstanceID, "execution", x.options.ExecutionID)
}

// liveHandler passes records on, unless the execution is being replayed or unwound.
type liveHandler struct {
	slog.Handler
	x *execution
}

// Enabled implements slog.Handler.
func (h liveHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.x.journal.Cursor.Replaying() && h.x.scheduler.Gate().Is(coroutine.Live) && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h liveHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return liveHandler{h.Handler.WithAttrs(attrs), h.x}
}

// WithGroup implements slog.Handler.
func (h liveHandler) WithGroup(name string) slog.Handler {
	return liveHandler{h.Handler.WithGroup(name), h.x}
}
