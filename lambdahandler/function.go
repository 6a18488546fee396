package lambdahandler

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/rehearsal"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/schedule"
	"github.com/perdure/perdure/ui"
)

// Function is a function of a hub, ready to serve.
type Function struct {
	handler lambda.Handler
	// poll serves the hub outside Lambda.
	poll  func(ctx context.Context) error
	log   *slog.Logger
	asker provider.Asker // nil but of an orchestrator
	// onLambda reports that Lambda has started the process.
	onLambda bool
}

// Option changes how a function is made.
type Option func(*settings)

type settings struct {
	getenv     func(string) string
	log        *slog.Logger
	middleware []func(lambda.Handler) lambda.Handler

	interceptors []perdure.Interceptor
	codecs       []perdure.Codec
}

// WithEnvironment sets the source of the function's configuration. The default is os.Getenv.
func WithEnvironment(getenv func(name string) string) Option {
	return func(s *settings) { s.getenv = getenv }
}

// WithLogger sets where the function logs. The default writes to standard error at the level of PERDURE_LOG_LEVEL: JSON
// on Lambda, text elsewhere.
func WithLogger(log *slog.Logger) Option { return func(s *settings) { s.log = log } }

// WithMiddleware wraps the handler that Lambda calls, for example with tracing: the first wrapper is the outermost. It
// has no effect in processes that Lambda has not started.
func WithMiddleware(wrap ...func(lambda.Handler) lambda.Handler) Option {
	return func(s *settings) { s.middleware = append(s.middleware, wrap...) }
}

// WithInterceptors has interceptors called around what the function does: turns in an orchestrator, activities in a worker, in the API the
// calls that it makes for its callers, and in a renewer those by which it puts the schedules that the stack declares. The first is the outermost; those of
// earlier options come before.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return func(s *settings) { s.interceptors = append(s.interceptors, interceptors...) }
}

// WithCodec sets the codec of the hub's programs (perdure.Codec): the function encodes payloads with it, and decodes them. Others are codecs to read with
// alone, as those of before; a nil codec encodes nothing. Orchestrators and workers need it; the API shows payloads decoded to whoever may call it
// where it has it, and else as what they are; a renewer encodes the inputs of the schedules that the stack declares. NewClient takes it too. Given twice, the
// later option counts.
func WithCodec(codec perdure.Codec, others ...perdure.Codec) Option {
	return func(s *settings) { s.codecs = append([]perdure.Codec{codec}, others...) }
}

// Handler returns the handler for Lambda, within its middleware.
func (f *Function) Handler() lambda.Handler { return f.handler }

// Asker returns who answers queries in this process, for client.WithAsker: of a function that NewOrchestrator has made, and nil of others.
// A process that polls the inbox and holds a client asks its own code with it; on Lambda the client invokes the function by itself.
func (f *Function) Asker() provider.Asker { return f.asker }

// Serve serves the function. On Lambda it passes the handler to the runtime, and does not return. Elsewhere it serves
// until ctx ends, finishes what it has begun, and returns nil. What could not be finished is logged, and delivered
// again.
func (f *Function) Serve(ctx context.Context) error {
	if f.onLambda {
		lambda.StartWithOptions(f.handler, lambda.WithContext(ctx))
		return nil
	}
	context.AfterFunc(ctx, func() {
		f.log.Info("stopping, finishing work in progress", "event", logevent.ProcessStopping)
	})
	return f.poll(ctx)
}

// NewOrchestrator makes the function of the inbox: it runs the turns of the orchestrations in r, answers queries of their instances where a
// client invokes it, and reports what r holds. Outside Lambda it polls the inbox. Its error names every variable of the environment that is wrong.
//
// A hub's inbox is push or poll, never both: an instance's turns would be shared between two deployments that may hold
// different code, and between two caches of which each makes the other stale. Nothing is lost by it, but replay may
// find the other's decisions in a history (an instance is then blocked), and most turns would be cold. So before the
// inbox is polled, the orchestrator function's event source mapping must be disabled.
//
// It adds the orchestration of schedules to r (package schedule).
//
// Started by `perdure verify` it does neither: it replays the histories that it is given, and needs nothing of the environment.
func NewOrchestrator(ctx context.Context, r *perdure.Registry, opts ...Option) (*Function, error) {
	schedule.AddTo(r)
	b := begin(true, true, opts)
	if rehearsal.Asked(b.getenv) {
		return b.rehearsal(r), nil
	}
	options := dispatch.OrchestratorOptions{
		BuildID: b.env.buildID(), Logger: b.log, CacheBytes: b.env.bytes("PERDURE_CACHE_BYTES", dispatch.DefaultCacheBytes),
		MaxAttempts: b.env.maxAttempts(), Retention: b.env.retention(), Interceptors: b.interceptors, Codecs: b.codecs,
		HubName: b.env.optional("PERDURE_HUB", ""), Metrics: b.env.metrics(), InlineTimeout: b.env.inlineTimeout(),
	}
	if options.CacheBytes == 0 {
		options.CacheBytes = -1 // none, since zero means the default
	}
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	o, err := dispatch.NewOrchestrator(r, p, &options)
	if err != nil {
		return nil, err
	}
	if err := o.Announce(ctx); err != nil {
		b.log.WarnContext(ctx, "build report failed", "event", logevent.BuildReportFailed, "error", err)
	}
	f := b.function(inboxHandler(o), func(ctx context.Context) error {
		defer o.Close()
		return b.serveQueue(ctx, p, provider.QueueInbox, o, slices.Sorted(maps.Keys((*registry.Registry)(r).Names().Orchestrations)), dispatch.PollOptions{})
	})
	f.asker = o
	return f, nil
}

// NewWorker makes the function of the work queue PERDURE_QUEUE, and of the FIFO queue for exclusive keys beside it, where the hub has that: it runs
// the activities in r. Outside Lambda it polls them. A work queue may be push and poll at once: a worker keeps no state between activities, so it does not
// matter which one runs an activity, as long as both have it. Its error names every variable of the environment that is
// wrong.
func NewWorker(ctx context.Context, r *perdure.Registry, opts ...Option) (*Function, error) {
	b := begin(true, false, opts)
	options := dispatch.WorkerOptions{
		BuildID: b.env.buildID(), HubName: b.env.optional("PERDURE_HUB", ""), Logger: b.log, Queue: b.env.optional("PERDURE_QUEUE", perdure.DefaultQueue),
		MaxAttempts: b.env.maxAttempts(), OmitErrorTexts: !b.env.logsErrorTexts(), Interceptors: b.interceptors, Codecs: b.codecs,
		Metrics: b.env.metrics(),
	}

	b.env.activities(&options)
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	if !b.onLambda() {
		b.env.checkQueue(options.Queue, p.Hub())
	}
	if err := b.env.err(); err != nil {
		return nil, err
	}

	w, err := b.newWorkers(ctx, r, p, &options)
	if err != nil {
		return nil, err
	}
	return b.function(sqsHandler(w), func(ctx context.Context) error { return b.serveWork(ctx, p, w, r, &options) }), nil
}

// NewRenewer makes the function of the timers queue. When EventBridge invokes it, it keeps watch over instances that
// are stuck. It also renews locks of work items for processes that work on them without a worker of this module, over
// HTTP or invoked with the body of that call. Outside Lambda it polls the queue and keeps watch every two minutes; the
// API then makes the renewals. Push and poll at once do no harm. Its error names every variable of the environment that
// is wrong.
func NewRenewer(ctx context.Context, opts ...Option) (*Function, error) {
	b := begin(true, true, opts)
	metrics := b.env.metrics()
	schedules := b.env.optional("PERDURE_SCHEDULES", "")
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	k, err := dispatch.NewTimekeeper(p, &dispatch.TimekeeperOptions{HubName: b.env.optional("PERDURE_HUB", ""), Metrics: metrics, Logger: b.log})
	if err != nil {
		return nil, err
	}
	r := newRenewer(k, b.client(p), schedules, b.log)
	return b.function(r.handle, func(ctx context.Context) error {
		b.log.InfoContext(ctx, "serving timers and running the sweeper", "event", logevent.ServingTimers,
			"hub", p.Hub().Name)
		b.stopped(renew(ctx, p, r))
		return nil
	}), nil
}

// NewAPI makes the function of the HTTP API, behind API Gateway or a function URL. Outside Lambda it serves plain HTTP
// on PERDURE_LISTEN, by default 127.0.0.1:8080. It does not authenticate callers: on Lambda, the gateway does. History
// says who has made a call if PERDURE_API_AUTHORIZATION says how the gateway authorizes callers: iam, jwt, or lambda for
// a function. Its error names every variable of the environment that is wrong.
//
// Outside Lambda it rejects requests with a host that is neither a name of loopback, nor PERDURE_LISTEN, nor one of
// PERDURE_ALLOWED_HOSTS, which is required where PERDURE_LISTEN is not on loopback. It rejects changes from web pages of
// other origins, and on loopback reads too, except from PERDURE_UI_ORIGINS. With PERDURE_UI=true it also serves the web
// UI at /ui, to the same callers, and rejects such changes on Lambda too.
func NewAPI(ctx context.Context, opts ...Option) (*Function, error) {
	b := begin(false, true, opts)
	page := b.env.servesPage()
	a := access{b.env.pageGuard(), b.env.allowedHosts()}
	by := b.env.authorization()
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	h := httpapi.New(b.client(p), httpapi.WithLogger(b.log))
	if page {
		h = withPage(h, a.origins)
	}
	if b.onLambda() && b.getenv(apiAuthorization) == "" { // the code is newer than its environment
		b.log.WarnContext(ctx, "callers are not recorded: PERDURE_API_AUTHORIZATION is not set",
			"event", logevent.APICallersUnrecorded, "fix", "deploy the stack with the construct of this release")
	}
	return b.function(httpHandler(h, by), func(ctx context.Context) error { return b.listen(ctx, p, h, a) }), nil
}

// withPage serves the page beside the API. A mux would clean the paths of the API's calls, in which ids are. Where the page is served, browsers
// may call the API without saying who they are, or by a proxy that says it for them: guard refuses changes that a page of another origin asks for.
func withPage(api http.Handler, guard *http.CrossOriginProtection) http.Handler {
	page := ui.Handler()
	return guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ui.Path {
			page.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
}

// binary is the common part of the four functions while they are made.
type binary struct {
	settings

	env     *environment
	hub     dynamo.Hub
	provide []dynamo.Option
}

func begin(queues, timers bool, opts []Option) *binary {
	b := &binary{settings: settings{getenv: os.Getenv}}
	for _, opt := range opts {
		opt(&b.settings)
	}
	b.env = &environment{getenv: b.getenv}
	if byName(b.getenv) {
		b.env.required("PERDURE_HUB")
	} else {
		b.hub = b.env.hub(queues, timers)
	}

	if level := (&slog.HandlerOptions{Level: b.env.logLevel()}); b.log == nil {
		b.log = slog.New(withIDs{Handler: slog.NewTextHandler(os.Stderr, level)}) // for a terminal
		if b.onLambda() {
			b.log = slog.New(withIDs{Handler: slog.NewJSONHandler(os.Stderr, level)})
		}
	}
	if b.onLambda() {
		tuneMemory(b.getenv)
	}
	b.provide = append(b.env.timing(&b.hub), dynamo.WithLogger(b.log))
	return b
}

// clientOptions are those of the clients that the function makes.
func (b *binary) clientOptions() []client.Option {
	all := []client.Option{client.WithInterceptors(b.interceptors...)}
	if len(b.codecs) > 0 {
		all = append(all, client.WithCodec(b.codecs[0], b.codecs[1:]...))
	}
	return all
}

// client makes a client that calls on behalf of others: its caller is not the identity of these credentials.
func (b *binary) client(h client.Hub) *client.Client {
	return client.New(h, append(b.clientOptions(), client.WithCaller(""))...)
}

func (b *binary) onLambda() bool { return onLambda(b.getenv) }

// open opens the hub, once the environment was read.
func (b *binary) open(ctx context.Context) (*dynamo.Provider, error) {
	if err := b.env.err(); err != nil {
		return nil, err
	}
	if byName(b.getenv) {
		p, err := dynamo.Open(ctx, b.getenv("PERDURE_HUB"), b.provide...)
		if err != nil {
			b.env.failf("PERDURE_HUB", "does not name a hub that can be opened: %v", err)
		}
		return p, b.env.err()
	}

	cfg, err := awsConfig(ctx, dynamo.SDKLogger(b.log))
	if err != nil {
		b.env.failf("AWS_*", "do not make a configuration: %v", err)
		return nil, b.env.err()
	}
	p, err := dynamo.New(b.hub, dynamo.FromConfig(cfg), b.provide...)
	if err != nil {
		b.env.failf("PERDURE_*", "do not make a hub: %v", err)
	}
	return p, b.env.err()
}

// function makes the Function. handler is as lambda.NewHandler takes it.
func (b *binary) function(handler any, poll func(ctx context.Context) error) *Function {
	f := &Function{handler: lambda.NewHandler(handler), poll: poll, log: b.log, onLambda: b.onLambda()}
	for _, wrap := range slices.Backward(b.middleware) {
		f.handler = wrap(f.handler)
	}
	return f
}
