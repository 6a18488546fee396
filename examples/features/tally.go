package features

import "github.com/perdure/perdure"

// Tally is what one execution leaves to the next: there is no other memory.
type Tally struct {
	Sum int `json:"sum"`
	// Left is how many numbers are still to come.
	Left int `json:"left"`
}

const numbersPerExecution = 100

// KeepTally adds up the data of the events "number" as they come. After each hundred it begins anew, so that its history stays
// short however many there are; events that it has not consumed go on with it.
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
