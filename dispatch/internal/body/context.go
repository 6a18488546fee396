package body

import (
	"context"
	"time"
)

// Until returns a context with the values of ctx and the given deadline, or without a deadline if it is zero. The
// context ends neither with ctx nor at the deadline: the caller derives a context from it and ends that one with a
// cause.
func Until(ctx context.Context, deadline time.Time) context.Context {
	return untilContext{context.WithoutCancel(ctx), deadline}
}

type untilContext struct {
	context.Context //nolint:containedctx // the type is a context

	deadline time.Time
}

func (c untilContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }
