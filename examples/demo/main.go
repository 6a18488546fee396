// Command demo starts a file of orders through the HTTP API of a task hub, acts as the warehouse that packs them, and
// prints their progress. Most orders are delivered. Some fail, expire or are cancelled.
//
//	go run ./examples/demo
//
// The environment variable PERDURE_API sets the URL of the API, http://127.0.0.1:8080/v1 by default.
//
// The last line of the output is for scripts: "demo: N instances, N completed, N failed, T s". The exit code is 1 if an
// order has an unexpected outcome. For example, an order with a declined card must fail.
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
	file := flag.String("orders", "examples/orders/orders.json", "file with a JSON array of orders")
	limit := flag.Duration("timeout", 2*time.Minute, "time limit")
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
	b, err := os.ReadFile(file) //nolint:gosec // the user names the file
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
