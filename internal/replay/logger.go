package replay

import (
	"context"
	"log/slog"

	"github.com/perdure/perdure/internal/replay/coroutine"
	"github.com/perdure/perdure/internal/replay/journal"
)

// newLogger returns the logger of an orchestration. It logs nothing during a replay.
func newLogger(opts *executionOptions, orchestration string, past *journal.Cursor, gate *coroutine.Gate) *slog.Logger {
	inner := slog.DiscardHandler
	if opts.Logger != nil {
		inner = opts.Logger.Handler()
	}
	return slog.New(liveHandler{inner, past, gate}).With(
		"orchestration", orchestration, "instance", opts.InstanceID, "execution", opts.ExecutionID)
}

// liveHandler passes records to the next handler, unless the execution is being replayed or unwound.
type liveHandler struct {
	slog.Handler

	past *journal.Cursor
	gate *coroutine.Gate
}

// Enabled implements slog.Handler.
func (h liveHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.past.Replaying() && h.gate.Is(coroutine.Live) && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h liveHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return liveHandler{h.Handler.WithAttrs(attrs), h.past, h.gate}
}

// WithGroup implements slog.Handler.
func (h liveHandler) WithGroup(name string) slog.Handler {
	return liveHandler{h.Handler.WithGroup(name), h.past, h.gate}
}
