package lambdahandler

import (
	"context"
	"log/slog"
	"slices"

	"github.com/perdure/perdure/internal/activityctx"
)

// withIDs adds to the lines of an activity's code, which the engine's loggers do not write, whose they are: to those whose context is an
// activity's, and which do not say it themselves.
type withIDs struct {
	slog.Handler

	said bool // the logger has the instance
}

const attrInstance = "instance"

// Handle implements slog.Handler.
func (h withIDs) Handle(ctx context.Context, r slog.Record) error {
	if a := activityctx.InfoFrom(ctx); a.ExecutionID != "" && !h.said {
		r = r.Clone()
		r.AddAttrs(slog.String("activity", a.Name), slog.String(attrInstance, a.InstanceID), slog.String("execution", a.ExecutionID),
			slog.Int64("activityId", a.ActivityID), slog.Int("attempt", a.Attempt))
	}
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // a handler passes on
}

// WithAttrs implements slog.Handler.
func (h withIDs) WithAttrs(attrs []slog.Attr) slog.Handler {
	said := slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == attrInstance })
	return withIDs{h.Handler.WithAttrs(attrs), h.said || said}
}

// WithGroup implements slog.Handler: what is added would stand within the group.
func (h withIDs) WithGroup(name string) slog.Handler {
	return withIDs{h.Handler.WithGroup(name), h.said}
}
