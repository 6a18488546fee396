package body

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/internal/registry"
)

// Chain holds the interceptors of activities. A nil Chain is empty.
type Chain = intercept.Chain[perdure.ActivityInfo, perdure.ActivityResult]

// ChainOf returns a chain of the interceptors' Activity functions, or nil if there are none.
func ChainOf(log *slog.Logger, interceptors []perdure.Interceptor) *Chain {
	type function = intercept.Func[perdure.ActivityInfo, perdure.ActivityResult]
	return intercept.New("an activity", log, interceptors, func(i perdure.Interceptor) function { return i.Activity })
}

// Intercept returns code with the interceptors around it. The timeouts of the attempt also limit the interceptors. The
// interceptors receive a copy of the failure.
func Intercept(c *Chain, code Run) Run {
	if c == nil {
		return code
	}
	return func(ctx context.Context, input json.RawMessage) (value json.RawMessage, failure *history.Failure) {
		// without the token, which only the activity's code may use
		info := perdure.ActivityInfo(activityctx.InfoFrom(ctx))
		c.Run(ctx, info, func(within context.Context) perdure.ActivityResult {
			value, failure = code(within, input)
			if timeout := TimeoutOf(ctx); failure != nil && timeout != nil {
				return perdure.ActivityResult{Failure: intake.TimedOut(timeout.Message)}
			}
			if failure != nil && failure.Type == registry.TypePending {
				return perdure.ActivityResult{Pending: true}
			}
			return perdure.ActivityResult{Failure: failure.Clone()}
		})
		return value, failure
	}
}
