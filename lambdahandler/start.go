package lambdahandler

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider/dynamo"
)

// StartOrchestrator serves the inbox: it runs the turns of the orchestrations in r, and makes known what r holds. It does
// not return.
func StartOrchestrator(r *perdure.Registry) {
	f := begin(true, true)
	opts := f.options(r)
	if opts.CacheBytes = f.env.bytes("PERDURE_CACHE_BYTES", "64 MiB"); opts.CacheBytes == 0 {
		opts.CacheBytes = -1 // none, where zero is the default
	}
	f.check()
	o := dispatch.NewOrchestrator(opts)
	if err := o.Announce(context.Background()); err != nil {
		f.log.Warn("this build could not be made known: orchestrations that are new in it cannot be started until another process has", "error", err)
	}
	lambda.Start(sqsHandler(o))
}

// StartWorker serves the work queue PERDURE_QUEUE: it runs the activities in r. It does not return.
func StartWorker(r *perdure.Registry) {
	f := begin(true, false)
	opts := f.options(r)
	opts.Queue = f.env.optional("PERDURE_QUEUE", perdure.DefaultQueue)
	f.check()
	lambda.Start(sqsHandler(dispatch.NewWorker(opts)))
}

// StartRenewer serves the timers queue and, when EventBridge wakes it, keeps watch over what got stuck. It does not return.
func StartRenewer(r *perdure.Registry) {
	f := begin(true, true)
	opts := f.options(r)
	f.check()
	lambda.Start(renewerHandler(dispatch.NewTimekeeper(opts)))
}

// StartAPI serves the HTTP API behind API Gateway or a function URL. It does not return.
func StartAPI() {
	f := begin(false, true)
	p := f.provider()
	f.check()
	lambda.Start(httpHandler(httpapi.New(client.New(p), httpapi.WithLogger(f.log))))
}

// function is what the four have in common while they start.
type function struct {
	env     *environment
	hub     dynamo.Hub
	provide []dynamo.Option
	log     *slog.Logger
}

func begin(queues, timers bool) *function {
	tuneMemory(os.Getenv)
	env := &environment{getenv: os.Getenv}
	f := &function{env: env, hub: env.hub(queues, timers)}
	f.log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: env.logLevel()}))
	slog.SetDefault(f.log)
	f.provide = append(env.timing(&f.hub), dynamo.WithLogger(f.log))
	f.check()
	return f
}

// check ends the process when a variable is wrong.
func (f *function) check() {
	if err := f.env.err(); err != nil {
		fmt.Fprintln(os.Stderr, strings.ReplaceAll(err.Error(), "\n", "\n  "))
		os.Exit(1)
	}
}

func (f *function) provider() *dynamo.Provider {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		f.env.failf("AWS_*", "do not make a configuration: %v", err)
		f.check()
	}
	p, err := dynamo.New(f.hub, dynamo.FromConfig(cfg), f.provide...)
	if err != nil {
		f.env.failf("PERDURE_*", "do not make a hub: %v", err)
		f.check()
	}
	return p
}

func (f *function) options(r *perdure.Registry) dispatch.Options {
	return dispatch.Options{Registry: r, Provider: f.provider(), BuildID: f.env.optional("PERDURE_BUILD_ID", "dev"), Logger: f.log}
}
