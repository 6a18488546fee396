package perdure_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Booking is a credit or debit of an account.
type Booking struct {
	Account string
	Cents   int
}

func book(_ context.Context, b Booking) (string, error) {
	return fmt.Sprintf("%d on %s", b.Cents, b.Account), nil
}

// bookAll writes one booking at a time to each account, across all instances. The timeout releases the account if a
// booking hangs.
func bookAll(ctx *perdure.OrchestrationContext, bookings []Booking) (string, error) {
	var fs []*perdure.Future[string]
	for _, b := range bookings {
		fs = append(fs,
			perdure.CallActivity(ctx, book, b, perdure.Exclusive("account "+b.Account),
				perdure.WithStartToCloseTimeout(time.Minute)))
	}
	booked, err := perdure.AwaitAll(ctx, fs)
	return strings.Join(booked, ", "), err
}

func ExampleExclusive() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "book", book)
	perdure.AddOrchestration(r, "book-all", bookAll)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "book-all", []Booking{{"17", 500}, {"17", -200}, {"18", 40}}))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: 500 on 17, -200 on 17, 40 on 18
}
