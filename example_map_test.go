package perdure_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// askPrice asks a carrier for its price; one does not answer.
func askPrice(_ context.Context, carrier string) (int, error) {
	if carrier == "slow" {
		return 0, errors.New("no answer")
	}
	return 10 * len(carrier), nil
}

// quoteAll asks all carriers, two at a time, and goes on without those that do not answer.
func quoteAll(ctx *perdure.OrchestrationContext, carriers []string) ([]int, error) {
	quotes, err := perdure.Map(ctx, carriers, func(ctx *perdure.OrchestrationContext, carrier string) (int, error) {
		return perdure.CallActivity(ctx, askPrice, carrier).Await(ctx)
	}, perdure.MaxConcurrent(2), perdure.TooManyFailed(2))
	return quotes.Values(), err
}

// Work on many, few at a time.
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

// firstQuote takes the first price that there is.
func firstQuote(ctx *perdure.OrchestrationContext, carriers []string) (int, error) {
	var quotes []*perdure.Future[int]
	for _, carrier := range carriers {
		quotes = append(quotes, perdure.CallActivity(ctx, askPrice, carrier))
	}
	return perdure.First(ctx, quotes)
}

// One success is enough: failures are passed over, and the rest is cancelled.
func ExampleFirst() {
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

// sumQuotes needs all prices.
func sumQuotes(ctx *perdure.OrchestrationContext, carriers []string) (sum int, err error) {
	var quotes []*perdure.Future[int]
	for _, carrier := range carriers {
		quotes = append(quotes, perdure.CallActivity(ctx, askPrice, carrier))
	}
	values, err := perdure.Values(ctx, quotes)
	for _, value := range values {
		sum += value
	}
	return sum, err
}

// Fan out, and take what all come to.
func ExampleValues() {
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
