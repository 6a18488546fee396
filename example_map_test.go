package perdure_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// askPrice requests the price of a carrier. One carrier does not respond.
func askPrice(_ context.Context, carrier string) (int, error) {
	if carrier == "slow" {
		return 0, errors.New("no answer")
	}
	return 10 * len(carrier), nil
}

// quoteAll requests all prices, two at a time, and skips carriers that do not respond.
func quoteAll(ctx *perdure.OrchestrationContext, carriers []string) ([]int, error) {
	quotes, err := perdure.Map(ctx, carriers, func(ctx *perdure.OrchestrationContext, carrier string) (int, error) {
		return perdure.CallActivity(ctx, askPrice, carrier).Await(ctx)
	}, perdure.MaxConcurrency(2), perdure.ToleratedFailures(1))
	return quotes.Values(), err
}

// Process many items with limited concurrency.
func ExampleMap() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ask-price", askPrice)
	perdure.AddOrchestration(r, "quote-all", quoteAll)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "quote-all", []string{"road", "slow", "sea"}))
	fmt.Println(must(client.Result[[]int](must(c.Wait(ctx, id)))))
	// Output: [40 30]
}

// firstQuote returns the first price.
func firstQuote(ctx *perdure.OrchestrationContext, carriers []string) (int, error) {
	var quotes []*perdure.Future[int]
	for _, carrier := range carriers {
		quotes = append(quotes, perdure.CallActivity(ctx, askPrice, carrier))
	}
	return perdure.FirstSuccess(ctx, quotes)
}

// Return the first price and cancel the other activities. Failures are skipped.
func ExampleFirstSuccess() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ask-price", askPrice)
	perdure.AddOrchestration(r, "first-quote", firstQuote)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "first-quote", []string{"slow", "road"}))
	fmt.Println(must(client.Result[int](must(c.Wait(ctx, id)))))
	// Output: 40
}

// sumQuotes requires all prices.
func sumQuotes(ctx *perdure.OrchestrationContext, carriers []string) (sum int, err error) {
	var quotes []*perdure.Future[int]
	for _, carrier := range carriers {
		quotes = append(quotes, perdure.CallActivity(ctx, askPrice, carrier))
	}
	values, err := perdure.AwaitAll(ctx, quotes)
	for _, value := range values {
		sum += value
	}
	return sum, err
}

// Wait for the values of all futures.
func ExampleAwaitAll() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ask-price", askPrice)
	perdure.AddOrchestration(r, "sum-quotes", sumQuotes)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "sum-quotes", []string{"road", "sea"}))
	fmt.Println(must(client.Result[int](must(c.Wait(ctx, id)))))
	// Output: 70
}
