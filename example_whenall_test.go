package perdure_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func countWords(_ context.Context, page string) (int, error) {
	return len(strings.Fields(page)), nil
}

// countAll counts all pages concurrently, one activity for each page, and returns the sum.
func countAll(ctx *perdure.OrchestrationContext, pages []string) (int, error) {
	var counts []*perdure.Future[int]
	for _, page := range pages {
		counts = append(counts, perdure.CallActivity(ctx, countWords, page))
	}
	if err := perdure.WhenAll(ctx, perdure.Awaitables(counts)...); err != nil {
		return 0, err // the errors of all failed activities
	}
	total := 0
	for _, count := range counts {
		n, err := count.Await(ctx) // returns immediately
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// Fan out, fan in.
func ExampleWhenAll() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "count-words", countWords)
	perdure.AddOrchestration(r, "count-all", countAll)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "count-all", []string{"call me Ishmael", "it was the best of times", "mother died today"}))
	fmt.Println(must(client.Result[int](must(c.Wait(ctx, id)))), "words")
	// Output: 12 words
}
