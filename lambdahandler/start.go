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
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// StartOrchestrator serves the inbox: it runs the turns of the orchestrations in r, and makes known what r holds. On Lambda
// it does not return; elsewhere it polls the inbox until SIGINT or SIGTERM.
//
// A hub's inbox is push or poll, never both: an instance's turns would be shared out to two deployments that may hold
// different code, and to two caches of which each makes the other stale. Nothing is lost by it, but replay may find the
// other's decisions in a history (an instance is then blocked), and most turns would be cold. So before this is polled, the
// orchestrator function's event source mapping is to be disabled.
func StartOrchestrator(r *perdure.Registry) {
	f := begin(true, true)
	opts := f.options(r)
	if opts.CacheBytes = f.env.bytes("PERDURE_CACHE_BYTES", "64 MiB"); opts.CacheBytes == 0 {
		opts.CacheBytes = -1 // none, where zero is the default
	}
	opts.MaxAttempts, opts.Retention = f.env.maxAttempts(), f.env.retention()
	f.check()
	o := dispatch.NewOrchestrator(opts)
	if err := o.Announce(context.Background()); err != nil {
		f.log.Warn("this build could not be made known: orchestrations that are new in it cannot be started until another process has", "error", err)
	}
	if f.polled != nil {
		f.poll(provider.QueueInbox, o, orchestrationNames(r), dispatch.PollOptions{})
		o.Close()
		return
	}
	lambda.Start(sqsHandler(o))
}

// StartWorker serves the work queue PERDURE_QUEUE: it runs the activities in r. On Lambda it does not return; elsewhere it
// polls the queue until SIGINT or SIGTERM. A work queue may be push and poll at once: an activity remembers nothing of the
// one before, so it does not matter who has it, as long as both know it.
func StartWorker(r *perdure.Registry) {
	f := begin(true, false)
	opts := f.options(r)
	opts.Queue = f.env.optional("PERDURE_QUEUE", perdure.DefaultQueue)
	f.env.activities(&opts)
	opts.MaxAttempts, opts.OmitErrorTexts = f.env.maxAttempts(), !f.env.logsErrorTexts()
	if f.polled != nil {
		f.checkQueue(opts.Queue)
	}
	f.check()
	w := dispatch.NewWorker(opts)
	if err := w.Announce(context.Background()); err != nil {
		f.log.Warn("it could not be made known that this worker has started: activities of its queue may be shown as waiting for one", "queue", opts.Queue, "error", err)
	}
	if f.polled != nil {
		f.pollWork(opts, w, activityNames(r, opts.Queue))
		return
	}
	lambda.Start(sqsHandler(w))
}

// StartRenewer serves the timers queue and, when EventBridge wakes it, keeps watch over what got stuck. On Lambda it does not
// return; elsewhere it polls the queue, and keeps watch every two minutes, until SIGINT or SIGTERM. Push and poll at once do
// no harm.
func StartRenewer(r *perdure.Registry) {
	f := begin(true, true)
	opts := f.options(r)
	opts.HubName = f.env.optional("PERDURE_HUB", "")
	f.check()
	k := dispatch.NewTimekeeper(opts)
	if f.polled == nil {
		lambda.Start(renewerHandler(k))
		return
	}
	ctx, release := f.untilStopped()
	defer release()
	f.log.Info("serving timers by polling their queue, and keeping watch", "hub", f.polled.Hub().Name)
	f.stopped(renew(ctx, f.polled, k, f.log))
}

// StartAPI serves the HTTP API behind API Gateway or a function URL, and on Lambda does not return. Elsewhere it serves plain
// HTTP on PERDURE_LISTEN, by default 127.0.0.1:8080, until SIGINT or SIGTERM. It asks nobody who they are: on Lambda, IAM does.
func StartAPI() {
	f := begin(false, true)
	p := f.provider()
	f.check()
	h := httpapi.New(client.New(p, client.WithCaller("")), httpapi.WithLogger(f.log)) // who calls is not who has these credentials
	if f.polled != nil {
		f.listen(h)
		return
	}
	lambda.Start(httpHandler(h))
}

// function is what the four have in common while they start.
type function struct {
	env     *environment
	hub     dynamo.Hub
	provide []dynamo.Option
	log     *slog.Logger
	// polled is the provider of a process that Lambda has not started; nil on Lambda.
	polled *dynamo.Provider
}

func begin(queues, timers bool) *function {
	env := &environment{getenv: os.Getenv}
	f := &function{env: env}
	if byName(os.Getenv) {
		env.required("PERDURE_HUB")
	} else {
		f.hub = env.hub(queues, timers)
	}
	level := &slog.HandlerOptions{Level: env.logLevel()}
	f.log = slog.New(slog.NewTextHandler(os.Stderr, level)) // for a terminal
	if onLambda(os.Getenv) {
		tuneMemory(os.Getenv)
		f.log = slog.New(slog.NewJSONHandler(os.Stderr, level))
	}
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

// provider opens the hub.
func (f *function) provider() *dynamo.Provider {
	p := f.open()
	if !onLambda(os.Getenv) {
		f.polled = p
	}
	return p
}

func (f *function) open() *dynamo.Provider {
	if byName(os.Getenv) {
		p, err := dynamo.Open(context.Background(), os.Getenv("PERDURE_HUB"), f.provide...)
		if err != nil {
			f.env.failf("PERDURE_HUB", "does not name a hub that can be opened: %v", err)
			f.check()
		}
		return p
	}
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithLogger(dynamo.SDKLogger(f.log)))
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
