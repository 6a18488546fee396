package features

import "github.com/perdure/perdure"

// Tally is the state that one execution passes to the next one as its input.
type Tally struct {
	Sum int `json:"sum"`
	// Left is the number of events that are still expected.
	Left int `json:"left"`
}

const numbersPerExecution = 100

// KeepTally adds the data of the external events "number". It continues as new after every 100 events to keep its
// history short. Unconsumed events are passed to the next execution.
func KeepTally(ctx *perdure.OrchestrationContext, t Tally) (int, error) {
	for range min(numbersPerExecution, t.Left) {
		n, err := perdure.WaitForExternalEvent[int](ctx, "number").Await(ctx)
		if err != nil {
			return 0, err
		}
		t.Sum, t.Left = t.Sum+n, t.Left-1
		ctx.SetCustomStatus(t)
	}
	if t.Left > 0 {
		return perdure.ContinueAsNew[int](ctx, t)
	}
	return t.Sum, nil
}

func registerTally(r *perdure.Registry) { perdure.AddOrchestration(r, "keep-tally", KeepTally) }
