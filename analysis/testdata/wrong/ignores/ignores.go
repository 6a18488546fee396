// Package ignores has invalid ignore directives.
package ignores

import (
	"time"

	"github.com/perdure/perdure"
)

func order(ctx *perdure.OrchestrationContext, id string) (time.Time, error) {
	_ = time.Now() //perdure:ignore clock
	// want above `order calls time\.Now` `perdure:ignore clock has no reason.*\[ignore\]`

	//perdure:ignore clock nothing here is wrong
	// want above `//perdure:ignore clock ignores no finding.*remove it \[ignore\]`
	_ = ctx.Now()

	//perdure:ignore
	// want above `has no rule.*\[ignore\]`

	//perdure:ignore clocks a misspelled rule
	// want above `has the unknown rule clocks.*\[ignore\]`
	return time.Now(), nil // want `order calls time\.Now.*\[clock\]`
}
