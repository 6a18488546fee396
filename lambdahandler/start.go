package lambdahandler

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/perdure/perdure"
)

// StartOrchestrator calls NewOrchestrator and Serve. Call it from main. On Lambda it does not return. Elsewhere it
// returns after SIGINT or SIGTERM. If an environment variable is invalid, it prints an error that names the variable
// and exits the process. It sets the function's logger as the default logger.
func StartOrchestrator(r *perdure.Registry, opts ...Option) {
	start(func(ctx context.Context) (*Function, error) { return NewOrchestrator(ctx, r, opts...) })
}

// StartWorker calls NewWorker and Serve, like StartOrchestrator.
func StartWorker(r *perdure.Registry, opts ...Option) {
	start(func(ctx context.Context) (*Function, error) { return NewWorker(ctx, r, opts...) })
}

// StartRenewer calls NewRenewer and Serve, like StartOrchestrator.
func StartRenewer(opts ...Option) {
	start(func(ctx context.Context) (*Function, error) { return NewRenewer(ctx, opts...) })
}

// StartAPI calls NewAPI and Serve, like StartOrchestrator.
func StartAPI(opts ...Option) {
	start(func(ctx context.Context) (*Function, error) { return NewAPI(ctx, opts...) })
}

// start runs a function binary.
func start(newFunction func(ctx context.Context) (*Function, error)) {
	ctx := context.Background()
	if !onLambda(os.Getenv) { // Lambda stops the process without a signal
		stopped, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer release()
		ctx = stopped
	}
	if err := run(ctx, newFunction); err != nil {
		fmt.Fprintln(os.Stderr, strings.ReplaceAll(err.Error(), "\n", "\n  "))
		os.Exit(1) //nolint:gocritic // the process ends, so nothing must be released
	}
}

func run(ctx context.Context, newFunction func(ctx context.Context) (*Function, error)) error {
	f, err := newFunction(ctx)
	if err != nil {
		return err
	}
	slog.SetDefault(f.log)
	return f.Serve(ctx)
}
