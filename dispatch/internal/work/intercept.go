package work

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/internal/registry"
)

type activityChain = intercept.Chain[perdure.ActivityInfo, perdure.ActivityResult]

func interceptorsOf(o *Options) *activityChain {
	return intercept.New("an activity", o.Logger, o.Interceptors, func(i perdure.Interceptor) intercept.Func[perdure.ActivityInfo, perdure.ActivityResult] {
		return i.Activity
	})
}

// intercepted is an activity whose code runs within the interceptors that there are. The limits of the attempt are around them: an
// interceptor that hangs is out of time as code is. They learn of a copy of the failure.
func (a *admission) intercepted(activity registry.Activity) registry.Activity {
	if a.interceptors == nil {
		return activity
	}
	code := activity.Run
	activity.Run = func(ctx context.Context, input json.RawMessage) (value json.RawMessage, failure *history.Failure) {
		info := perdure.ActivityInfoFrom(ctx)
		info.Token = "" // it is for the code alone
		a.interceptors.Run(ctx, info, func(within context.Context) perdure.ActivityResult {
			value, failure = code(within, input)
			if timeout := outOfTime(ctx); failure != nil && timeout != nil {
				return perdure.ActivityResult{Failure: intake.TimedOut(timeout.Message)}
			}
			if failure != nil && failure.Type == registry.TypePending {
				return perdure.ActivityResult{Pending: true}
			}
			return perdure.ActivityResult{Failure: failure.Clone()}
		})
		return value, failure
	}
	return activity
}
