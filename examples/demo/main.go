// Command demo fulfils a file of orders through the HTTP API of a task hub and shows how they get on.
//
//	go run ./examples/demo            # the API is at $PERDURE_API, http://127.0.0.1:8080/v1 by default
//
// It ends with a line for scripts, "demo: N instances, N completed, N failed", and exits 1 unless all have completed.
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

// result is how an order ended.
type result struct {
	status string
	err    error
}

// follow starts an order and shows its history as it grows, until it is over.
func follow(ctx context.Context, a *api, s *screen, o orders.Order) result {
	if err := a.start(ctx, "fulfil-order", o.ID, o); err != nil {
		return result{err: fmt.Errorf("%s: start: %w", o.ID, err)}
	}
	s.line(o.ID, "started", fmt.Sprintf("%d lines, %d.%02d, to %s", len(o.Lines), o.Total()/100, o.Total()%100, o.ShipTo.City))
	after := int64(0)
	for {
		events, err := a.history(ctx, o.ID, after)
		if err != nil {
			return result{err: fmt.Errorf("%s: history: %w", o.ID, err)}
		}
		for i := range events {
			after = events[i].ID
			if status, over := s.event(o.ID, &events[i]); over {
				return result{status: status}
			}
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return result{err: fmt.Errorf("%s: %w", o.ID, err)}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
