package lambdahandler

import (
	"context"
	"log/slog"
	"slices"

	"github.com/perdure/perdure/internal/activityctx"
)

// withIDs adds the IDs of an activity to log records that the activity writes with its context. It skips loggers with
// the attribute instance.
type withIDs struct {
	slog.Handler

	hasInstance bool // true if the logger has the attribute instance
}

const attrInstance = "instance"

// Handle implements slog.Handler.
func (h withIDs) Handle(ctx context.Context, r slog.Record) error {
	if a := activityctx.InfoFrom(ctx); a.ExecutionID != "" && !h.hasInstance {
		r = r.Clone()
		r.AddAttrs(slog.String("activity", a.Name), slog.String(attrInstance, a.InstanceID),
			slog.String("execution", a.ExecutionID), slog.Int64("activityId", a.ActivityID),
			slog.Int("attempt", a.Attempt))
	}
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // the error of the wrapped handler
}

// WithAttrs implements slog.Handler.
func (h withIDs) WithAttrs(attrs []slog.Attr) slog.Handler {
	added := slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == attrInstance })
	return withIDs{h.Handler.WithAttrs(attrs), h.hasInstance || added}
}

// WithGroup implements slog.Handler. IDs that are added later are in the group.
func (h withIDs) WithGroup(name string) slog.Handler {
	return withIDs{h.Handler.WithGroup(name), h.hasInstance}
}
