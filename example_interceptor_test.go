package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
)

func ExampleInterceptor() {
	logging := perdure.Interceptor{
		Activity: func(ctx context.Context, a perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
			r := next(ctx)
			fmt.Printf("activity %s of %s, attempt %d, failed: %t\n", a.Name, a.InstanceID, a.Attempt, r.Failure != nil)
		},
	}
	// lambdahandler.NewWorker(ctx, registry, lambdahandler.WithInterceptors(logging)) calls logging around each
	// activity:
	logging.Activity(context.Background(), perdure.ActivityInfo{Name: "charge", InstanceID: "order-7", Attempt: 1},
		func(context.Context) perdure.ActivityResult { return perdure.ActivityResult{} })

	// Output: activity charge of order-7, attempt 1, failed: false
}
