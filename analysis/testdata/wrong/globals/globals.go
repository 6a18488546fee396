// Package globals shares memory between instances.
package globals

import "github.com/perdure/perdure"

var (
	counter int
	seen    = map[string]bool{}
	rate    = 3
	list    []string
	config  struct{ limit int }
)

func order(ctx *perdure.OrchestrationContext, id string) (int, error) {
	counter++                // want `order writes counter: .*\[globals\]`
	seen[id] = true          // want `writes seen.*\[globals\]`
	delete(seen, id)         // want `writes seen.*\[globals\]`
	list = append(list, id)  // want `writes list.*\[globals\]` `warning: order reads list.*\[globalread\]`
	config.limit = 3         // want `writes config.*\[globals\]`
	note(id)                 // want `order calls note \(globals/globals\.go:\d+\), which writes seen.*\[globals\]`
	func() { counter = 0 }() // want `writes counter.*\[globals\]`
	if seen[id] {            // want `warning: order reads seen \(.*\), which is written at globals/globals\.go:\d+.*\[globalread\]`
		return rate, nil // want `warning: order reads rate.*\[globalread\]`
	}
	return limit(), nil // want `warning: order calls limit \(.*\), which reads rate \(.*\), which is written at.*\[globalread\]`
}

func note(id string) { seen[id] = true }

func limit() int { return rate * 2 }

func setRate(n int) { rate = n }
