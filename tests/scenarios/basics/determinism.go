package basics

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func determinismScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{Name: "DeterministicTime", Register: kit.Run(drawEachTurn(func(ctx *perdure.OrchestrationContext) string {
			return ctx.Now().Format(time.RFC3339Nano)
		})), Input: tick, Check: kit.Returns("the same")},
		{
			Name: "DeterministicUUID", Register: kit.Run(drawEachTurn((*perdure.OrchestrationContext).NewUUID)),
			Input: tick,
			Check: kit.Returns("the same"),
		},
		{Name: "DeterministicRandom", Register: kit.Run(drawEachTurn(func(ctx *perdure.OrchestrationContext) string {
			return strconv.FormatUint(ctx.Rand().Uint64(), 10)
		})), Input: tick, Check: kit.Returns("the same")},
		{Name: "SideEffectOnce", Register: kit.Run(drawEachTurn(func(ctx *perdure.OrchestrationContext) string {
			return perdure.SideEffect(ctx, rand.Text)
		})), Input: tick, Check: kit.Returns("the same")},
	}
}

// drawEachTurn draws a value in each turn and passes it to an activity. A replay must draw the same values, and the
// values must differ.
func drawEachTurn(draw func(ctx *perdure.OrchestrationContext) string) func(
	ctx *perdure.OrchestrationContext, tick time.Duration,
) (string, error) {
	return func(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
		var drawn, recorded []string
		for range 3 {
			drawn = append(drawn, draw(ctx))
			back, err := perdure.CallActivity(ctx, kit.Echo, drawn[len(drawn)-1]).Await(ctx)
			if err != nil {
				return "", err
			}
			recorded = append(recorded, back)
			if err := perdure.Sleep(ctx, tick/4); err != nil {
				return "", err
			}
		}
		for i := range drawn {
			if drawn[i] != recorded[i] || i > 0 && drawn[i] == drawn[i-1] {
				return "", fmt.Errorf("replay drew %q, the first run %q", drawn, recorded)
			}
		}
		return "the same", nil
	}
}
