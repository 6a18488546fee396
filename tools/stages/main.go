// Stages runs a test suite. A suite consists of make targets, each with a time budget. Targets that mostly wait run
// concurrently.
//
//	go run -C tools ./stages .. test     the stages of `make test`
//	go run -C tools ./stages .. ci       those of `.ci/run`
//	go run -C tools ./stages .. all      those of `make test-all`
//
// Stages, suites and budgets are in tests/stages.yaml. Stages writes logs and test results to the folder .stages of the
// module and ends with a table.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

const (
	planFile  = "tests/stages.yaml"
	logFolder = ".stages"
)

func main() {
	if len(os.Args) != 3 { //nolint:mnd // the command, the module and the suite
		fmt.Fprintln(os.Stderr, "usage: stages MODULE SUITE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to release
	}
}

// run runs the stages of a suite and returns an error if a stage fails or exceeds its budget.
func run(ctx context.Context, module, suite string) error {
	module, err := filepath.Abs(module)
	if err != nil {
		return fmt.Errorf("locate the module: %w", err)
	}
	plan, err := readPlan(filepath.Join(module, filepath.FromSlash(planFile)))
	if err != nil {
		return err
	}
	stages, err := plan.suite(suite)
	if err != nil {
		return err
	}
	logs := filepath.Join(module, logFolder, suite)
	const mode = 0o750
	err = errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, mode)) //nolint:gosec // in the module of the command
	if err != nil {
		return fmt.Errorf("create the folder of the logs: %w", err)
	}
	r := &runner{
		out: os.Stdout, cores: float64(runtime.NumCPU()),
		start: func(ctx context.Context, s stage) result { return runMake(ctx, module, logs, s, plan.Reference) },
	}
	return r.run(ctx, stages)
}
