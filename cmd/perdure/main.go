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
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

func main() {
	if analysis.IsVetCall(os.Args[1:]) {
		analysis.RunVetTool()
	}
	os.Exit(execute())
}

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := &cli.Env{
		OpenHub: openHub, OpenDeployment: hubadmin.Open,
		Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Interactive: cli.IsTerminal(os.Stderr),
		Now:         time.Now, Sleep: sleep.For, NewTicker: cli.NewTicker,
	}
	return run(ctx, env, os.Args[1:])
}

func openHub(ctx context.Context, name string) (cli.Hub, error) {
	p, err := dynamo.Open(ctx, name)
	if err != nil {
		return cli.Hub{}, err
	}
	return cli.NewHub(p), nil
}
