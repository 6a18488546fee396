package scenarios

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
)

func determinism(tick time.Duration) []Scenario {
	return []Scenario{
		{Name: "DeterministicTime", Register: body(told(func(ctx *perdure.OrchestrationContext) string {
			return ctx.Now().Format(time.RFC3339Nano)
		})), Input: tick, Check: gives("the same")},
		{
			Name: "DeterministicUUID", Register: body(told((*perdure.OrchestrationContext).NewUUID)), Input: tick,
			Check: gives("the same"),
		},
		{Name: "DeterministicRandom", Register: body(told(func(ctx *perdure.OrchestrationContext) string {
			return strconv.FormatUint(ctx.Rand().Uint64(), 10)
		})), Input: tick, Check: gives("the same")},
		{Name: "SideEffectOnce", Register: body(told(func(ctx *perdure.OrchestrationContext) string {
			return perdure.SideEffect(ctx, rand.Text)
		})), Input: tick, Check: gives("the same")},
	}
}

// told draws a value in each turn, and lets an activity say what it was. Replayed code draws again: it must be the
// same, and the values must differ from one another.
func told(draw func(ctx *perdure.OrchestrationContext) string) func(
	ctx *perdure.OrchestrationContext, tick time.Duration,
) (string, error) {
	return func(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
		var drawn, said []string
		for range 3 {
			drawn = append(drawn, draw(ctx))
			back, err := perdure.CallActivity(ctx, echo, drawn[len(drawn)-1]).Await(ctx)
			if err != nil {
				return "", err
			}
			said = append(said, back)
			if err := perdure.Sleep(ctx, tick/4); err != nil {
				return "", err
			}
		}
		for i := range drawn {
			if drawn[i] != said[i] || i > 0 && drawn[i] == drawn[i-1] {
				return "", fmt.Errorf("drawn %q, when they were drawn first %q", drawn, said)
			}
		}
		return "the same", nil
	}
}
