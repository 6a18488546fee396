package features

import (
	"context"
	"strings"

	"github.com/perdure/perdure"
)

// CountWords counts the words of all pages concurrently, with one activity per page (fan-out), and adds the counts
// (fan-in).
func CountWords(ctx *perdure.OrchestrationContext, pages []string) (int, error) {
	var counts []*perdure.Future[int]
	for _, page := range pages {
		counts = append(counts, perdure.CallActivity(ctx, countPage, page))
	}
	if err := perdure.WhenAll(ctx, perdure.Awaitables(counts)...); err != nil {
		return 0, err
	}
	total := 0
	for _, count := range counts {
		n, _ := count.Await(ctx) // WhenAll has returned any error
		total += n
	}
	return total, nil
}

func countPage(_ context.Context, page string) (int, error) {
	return len(strings.Fields(page)), nil
}

func registerFanOut(r *perdure.Registry) {
	perdure.AddOrchestration(r, "count-words", CountWords)
	perdure.AddActivity(r, "count-page", countPage)
}
