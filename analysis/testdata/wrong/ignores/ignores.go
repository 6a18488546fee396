// Package ignores ignores what it should not.
package ignores

import (
	"time"

	"github.com/perdure/perdure"
)

func order(ctx *perdure.OrchestrationContext, id string) (time.Time, error) {
	_ = time.Now() //perdure:ignore clock
	// want above `order calls time\.Now` `perdure:ignore clock gives no reason.*\[ignore\]`

	//perdure:ignore clock nothing here is wrong
	// want above `nothing is found here that //perdure:ignore clock ignores.*take it away \[ignore\]`
	_ = ctx.Now()

	//perdure:ignore
	// want above `names no rule.*\[ignore\]`

	//perdure:ignore clocks a slip of the pen
	// want above `names clocks, which is no rule.*\[ignore\]`
	return time.Now(), nil // want `order calls time\.Now.*\[clock\]`
}
