package body

import (
	"context"
	"time"
)

// Until is a context with the values of another, which shows a deadline and is ended by whoever looks after what runs under it, with a reason. Zero:
// there is no deadline. The end of ctx does not end it.
func Until(ctx context.Context, deadline time.Time) context.Context {
	return untilContext{context.WithoutCancel(ctx), deadline}
}

type untilContext struct {
	context.Context //nolint:containedctx // it is one

	deadline time.Time
}

func (c untilContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }
