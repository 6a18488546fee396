package scenarios

import "github.com/perdure/perdure"

func basics() []Scenario {
	const many = 25 // more than a batch of messages holds
	return []Scenario{
		{Name: "Hello", Register: body(hello), Input: "world", Check: gives("hello, world")},
		{Name: "Chain", Register: body(chain), Input: 4, Check: gives(4)},
		{Name: "Loop", Register: body(loop), Input: 6, Check: gives([]int{6, 3, 10, 5, 16, 8, 4, 2, 1})},
		{Name: "FanOutFanIn", Register: body(fan), Input: many, Check: gives(many * (many + 1) / 2)},
	}
}

func hello(_ *perdure.OrchestrationContext, name string) (string, error) {
	return "hello, " + name, nil
}

// chain calls inc n times, one after the other.
func chain(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
	for range n {
		if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

// loop goes on for as long as what comes back says, and by the path that it says: halves what is even, triples what is
// odd and adds one, by activities.
func loop(ctx *perdure.OrchestrationContext, n int) ([]int, error) {
	seen := []int{n}
	for n != 1 {
		if n%2 == 0 {
			n /= 2
		} else {
			var err error
			if n, err = perdure.CallActivity(ctx, inc, 3*n).Await(ctx); err != nil {
				return seen, err
			}
		}
		seen = append(seen, n)
	}
	return seen, nil
}

// fan calls inc n times at once, and adds up.
func fan(ctx *perdure.OrchestrationContext, n int) (sum int, err error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallActivity(ctx, inc, i))
	}
	return total(ctx, fs)
}

// total adds up what futures bring.
func total(ctx *perdure.OrchestrationContext, fs []*perdure.Future[int]) (sum int, err error) {
	if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
		return 0, err
	}
	for _, f := range fs {
		n, err := f.Await(ctx)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
