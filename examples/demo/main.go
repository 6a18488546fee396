// Command demo fulfils a file of orders through the HTTP API of a task hub, plays the warehouse that packs them, and shows how
// they get on: most are delivered, and some meet with what orders meet with.
//
//	go run ./examples/demo            # the API is at $PERDURE_API, http://127.0.0.1:8080/v1 by default
//
// It ends with a line for scripts, "demo: N instances, N completed, N failed", and exits 1 unless each order has ended as it should:
// a declined card, for one, must fail its order.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/perdure/perdure/examples/orders"
)

func main() {
	file := flag.String("orders", "examples/orders/orders.json", "a JSON array of orders")
	limit := flag.Duration("timeout", 2*time.Minute, "give up after this")
	flag.Parse()
	if err := run(*file, *limit, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(file string, limit time.Duration, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	var todo []orders.Order
	if err := json.Unmarshal(b, &todo); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	screen := newScreen(out)
	api := newAPI()
	results := make([]result, len(todo))
	var wg sync.WaitGroup
	for i, o := range todo {
		wg.Go(func() { results[i] = follow(ctx, api, screen, o) })
	}
	wg.Wait()
	return screen.sum(results)
}
