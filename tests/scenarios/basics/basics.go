package basics

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func basicScenarios() []kit.Scenario {
	const many = 25 // more than a batch of messages holds
	return []kit.Scenario{
		{Name: "Hello", Register: kit.Run(kit.Hello), Input: "world", Check: kit.Returns("hello, world")},
		{Name: "Chain", Register: kit.Run(kit.Chain()), Input: 4, Check: kit.Returns(4)},
		{Name: "Loop", Register: kit.Run(collatz), Input: 6, Check: kit.Returns([]int{6, 3, 10, 5, 16, 8, 4, 2, 1})},
		{Name: "FanOutFanIn", Register: kit.Run(kit.FanOut()), Input: many, Check: kit.Returns(many * (many + 1) / 2)},
	}
}

// collatz halves even numbers, and computes 3n+1 of odd ones with an activity, until it reaches 1.
func collatz(ctx *perdure.OrchestrationContext, n int) ([]int, error) {
	seen := []int{n}
	for n != 1 {
		if n%2 == 0 {
			n /= 2
		} else {
			var err error
			if n, err = perdure.CallActivity(ctx, kit.Inc, 3*n).Await(ctx); err != nil {
				return seen, err
			}
		}
		seen = append(seen, n)
	}
	return seen, nil
}
