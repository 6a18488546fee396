package scenarios

import (
	"slices"

	"github.com/perdure/perdure"
)

func sagas() []Scenario {
	return []Scenario{
		{
			Name: "CompensationAfterFailure", Register: body(trip), Input: []string{
				"hotel", "flight", soldOut, "theatre",
			},
			Check: gives([]string{
				"reserved hotel", "reserved flight", "StockError", "gave back flight", "gave back hotel",
			}),
		},
	}
}

// trip reserves one thing after the other. When one fails, it gives back what it has, the latest first.
func trip(ctx *perdure.OrchestrationContext, items []string) (log []string, err error) {
	var reserved []string
	for _, item := range items {
		done, err := perdure.CallActivity(ctx, reserve, item).Await(ctx)
		if err != nil {
			return compensate(ctx, reserved, append(log, typeOf(err)))
		}
		reserved, log = append(reserved, item), append(log, done)
	}
	return log, nil
}

func compensate(ctx *perdure.OrchestrationContext, reserved, log []string) ([]string, error) {
	for _, item := range slices.Backward(reserved) {
		done, err := perdure.CallActivity(ctx, undo, item).Await(ctx)
		if err != nil {
			return log, err
		}
		log = append(log, done)
	}
	return log, nil
}
