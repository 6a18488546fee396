// Command perdure runs and operates durable orchestrations on AWS. It needs the name of a task hub and AWS credentials.
//
//	perdure start fulfil --id order-7 --input '{"order": 7}'
//	perdure wait order-7
//	perdure history order-7
//
// Run perdure --help for all commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/perdure/perdure/analysis"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

func main() {
	if analysis.IsVetCall(os.Args[1:]) {
		analysis.RunVetTool()
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &command{
		open: openHub, admin: hubadmin.Open, getenv: os.Getenv, in: os.Stdin, out: os.Stdout, err: os.Stderr,
		now: time.Now, sleep: sleep.For, ticker: newTicker, attended: isTerminal(os.Stderr),
	}
	return c.run(ctx, os.Args[1:])
}

func openHub(ctx context.Context, name string) (hub, error) {
	p, err := dynamo.Open(ctx, name)
	if err != nil {
		return hub{}, err
	}
	return newHub(p), nil
}
