package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Export is a job of an external service.
type Export struct {
	ID   string
	Rows int
	Over bool
}

// describeExport returns the progress of the job.
func describeExport(_ context.Context, e Export) (Export, error) {
	e.Rows += 400
	e.Over = e.Rows >= 1000
	return e, nil
}

func export(ctx *perdure.OrchestrationContext, id string) (int, error) {
	done, err := perdure.WaitForCondition(ctx, Export{ID: id},
		func(ctx *perdure.OrchestrationContext, e Export) (Export, error) {
			return perdure.CallActivity(ctx, describeExport, e, perdure.Inline()).Await(ctx)
		}, func(e Export) bool {
			return e.Over
		}, perdure.PollPolicy{InitialInterval: 5 * time.Millisecond, BackoffCoefficient: 1.5, Timeout: time.Hour})
	return done.Rows, err
}

func ExampleWaitForCondition() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "describe-export", describeExport)
	perdure.AddOrchestration(r, "export", export)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "export", "sales"))
	fmt.Println(must(client.Result[int](must(c.Wait(ctx, id)))))
	// Output: 1200
}
