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
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replaycheck"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/schedule"
	"github.com/perdure/perdure/ui"
)

// Function is a function of a hub that is ready to serve.
type Function struct {
	handler lambda.Handler
	// poll runs the function outside Lambda.
	poll    func(ctx context.Context) error
	log     *slog.Logger
	querier provider.Querier // nil unless the function is an orchestrator
	// onLambda is true if Lambda has started the process.
	onLambda bool
}

// Option is an option of the New and Start functions and of NewClient.
type Option func(*settings)

type settings struct {
	getenv     func(string) string
	log        *slog.Logger
	middleware []func(lambda.Handler) lambda.Handler

	interceptors []perdure.Interceptor
	codecs       []perdure.Codec
}

// WithEnvironment sets the source of the environment variables. The default is os.Getenv.
func WithEnvironment(getenv func(name string) string) Option {
	return func(s *settings) { s.getenv = getenv }
}

// WithLogger sets the logger of the function. The default writes to standard error at the level of PERDURE_LOG_LEVEL,
// as JSON on Lambda and as text elsewhere.
func WithLogger(log *slog.Logger) Option { return func(s *settings) { s.log = log } }

// WithMiddleware wraps the Lambda handler, for example with tracing. The first wrapper is the outermost one. Outside
// Lambda, WithMiddleware has no effect.
func WithMiddleware(wrap ...func(lambda.Handler) lambda.Handler) Option {
	return func(s *settings) { s.middleware = append(s.middleware, wrap...) }
}

// WithInterceptors adds interceptors. They are called around turns in an orchestrator, activities in a worker, client
// calls in the API, and client calls for declared schedules in a renewer. The first interceptor is the outermost one.
// Interceptors of earlier options run outside interceptors of later options.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return func(s *settings) { s.interceptors = append(s.interceptors, interceptors...) }
}

// WithCodec sets the codec that encodes and decodes payloads. The other codecs only decode. If codec is nil, payloads
// are not encoded. A later WithCodec option replaces an earlier one.
//
// Orchestrators, workers and NewClient need the codec. With the codec, the API decodes payloads for its callers.
// Otherwise it returns references to the encoded payloads. A renewer encodes the inputs of schedules that the stack
// declares.
func WithCodec(codec perdure.Codec, others ...perdure.Codec) Option {
	return func(s *settings) { s.codecs = append([]perdure.Codec{codec}, others...) }
}

// Handler returns the Lambda handler, wrapped in the middleware.
func (f *Function) Handler() lambda.Handler { return f.handler }

// Querier returns a provider.Querier that runs queries in this process, for client.WithQuerier. It is nil if the
// function was not created by NewOrchestrator. A process that polls the inbox uses the Querier to run queries in its
// own process. On Lambda, the client invokes the orchestrator function instead.
func (f *Function) Querier() provider.Querier { return f.querier }

// Serve runs the function. On Lambda it passes the handler to the runtime and does not return. Elsewhere it runs until
// ctx ends, finishes work in progress, and returns nil. Unfinished records are logged and redelivered.
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

// NewOrchestrator returns the function of the inbox. The function runs the turns of the orchestrations in r and
// responds to queries. Outside Lambda it polls the inbox. NewOrchestrator adds the orchestration of package schedule to
// r. It returns an error that names every invalid environment variable.
//
// Either Lambda or polling processes may receive from an inbox, but not both. With both, two deployments would run
// turns of the same instance and keep outdated instances in memory. No data is lost, but instances can become blocked,
// and most turns need a replay. Disable the event source mapping of the orchestrator function before you poll the
// inbox.
//
// If `perdure verify` starts the process, the function replays the histories that it receives and needs no environment.
func NewOrchestrator(ctx context.Context, r *perdure.Registry, opts ...Option) (*Function, error) {
	schedule.Register(r)
	b := begin(true, true, opts)
	if replaycheck.Requested(b.getenv) {
		return b.replayServer(r), nil
	}
	options := dispatch.OrchestratorOptions{
		BuildID: b.env.buildID(), Logger: b.log,
		CacheBytes: b.env.bytes("PERDURE_CACHE_BYTES", dispatch.DefaultCacheBytes),
		MaxCrashes: b.env.maxCrashes(), Retention: b.env.retention(), Interceptors: b.interceptors, Codecs: b.codecs,
		HubName: b.env.optional("PERDURE_HUB", ""), Metrics: b.env.metrics(), InlineTimeout: b.env.inlineTimeout(),
	}
	if options.CacheBytes == 0 {
		options.CacheBytes = -1 // no cache, because zero selects the default
	}
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	o, err := dispatch.NewOrchestrator(r, p, &options)
	if err != nil {
		return nil, err
	}
	if err := o.ReportBuild(ctx); err != nil {
		b.log.WarnContext(ctx, "build report failed", "event", logevent.BuildReportFailed, "error", err)
	}
	f := b.function(inboxHandler(o), func(ctx context.Context) error {
		defer o.Close()
		names := slices.Sorted(maps.Keys((*registry.Registry)(r).Names().Orchestrations))
		return b.serveQueue(ctx, p, provider.QueueInbox, o, names, dispatch.PollOptions{})
	})
	f.querier = o
	return f, nil
}

// NewWorker returns the function of the work queue PERDURE_QUEUE, and of its FIFO queue for exclusive keys if the hub
// has one. The function runs the activities in r. Outside Lambda it polls the queues. Lambda and polling processes may
// receive from the same work queue if both have its activities. NewWorker returns an error that names every invalid
// environment variable.
func NewWorker(ctx context.Context, r *perdure.Registry, opts ...Option) (*Function, error) {
	b := begin(true, false, opts)
	options := dispatch.WorkerOptions{
		BuildID: b.env.buildID(), HubName: b.env.optional("PERDURE_HUB", ""), Logger: b.log,
		Queue:      b.env.optional("PERDURE_QUEUE", perdure.DefaultQueue),
		MaxCrashes: b.env.maxCrashes(), OmitErrorTexts: !b.env.logsErrorTexts(),
		Interceptors: b.interceptors, Codecs: b.codecs, Metrics: b.env.metrics(),
	}

	b.env.activities(&options)
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	if !b.onLambda() {
		b.env.checkQueue(options.Queue, p.Config())
	}
	if err := b.env.err(); err != nil {
		return nil, err
	}

	w, err := b.newWorkers(ctx, r, p, &options)
	if err != nil {
		return nil, err
	}
	serve := func(ctx context.Context) error { return b.serveWork(ctx, p, w, r, &options) }
	return b.function(sqsHandler(w), serve), nil
}

// NewRenewer returns the function of the timers queue. The function also runs the sweeper when EventBridge invokes it.
// It renews locks of work items for workers in other languages, over HTTP or by direct invocation. Outside Lambda it
// polls the queue and runs the sweeper every two minutes, and the API renews the locks. Lambda and polling processes
// may receive from the same timers queue. NewRenewer returns an error that names every invalid environment variable.
func NewRenewer(ctx context.Context, opts ...Option) (*Function, error) {
	b := begin(true, true, opts)
	metrics := b.env.metrics()
	schedules := b.env.optional("PERDURE_SCHEDULES", "")
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	k, err := dispatch.NewRenewer(p, &dispatch.RenewerOptions{
		HubName: b.env.optional("PERDURE_HUB", ""), Metrics: metrics, Logger: b.log,
	})
	if err != nil {
		return nil, err
	}
	r := newRenewer(k, b.client(p), schedules, b.log)
	return b.function(r.handle, func(ctx context.Context) error {
		b.log.InfoContext(ctx, "serving timers and running the sweeper", "event", logevent.ServingTimers,
			"hub", p.Config().Name)
		b.logStop(serveTimers(ctx, p, r))
		return nil
	}), nil
}

// NewAPI returns the function of the HTTP API, behind API Gateway or a function URL. Outside Lambda it serves HTTP on
// PERDURE_LISTEN, by default 127.0.0.1:8080. NewAPI returns an error that names every invalid environment variable.
//
// The function does not authenticate callers. On Lambda, the gateway does. Set PERDURE_API_AUTHORIZATION to the
// gateway's kind of authorization (iam, jwt, or lambda for an authorizer function), so that the history records the
// callers.
//
// Outside Lambda the function accepts only requests whose host is a loopback name, PERDURE_LISTEN, or one of
// PERDURE_ALLOWED_HOSTS. This variable is required if PERDURE_LISTEN is not on loopback. The function rejects changes
// from web pages of other origins, and on loopback also reads, unless PERDURE_UI_ORIGINS lists the origin.
//
// With PERDURE_UI=true the function also serves the web UI at /ui, to the same callers. It then also rejects changes
// from other origins on Lambda.
//
// With PERDURE_API_STREAM=true the function streams its responses to a function URL, whose invoke mode must be
// RESPONSE_STREAM. Middleware then runs until the header of a response is complete.
func NewAPI(ctx context.Context, opts ...Option) (*Function, error) {
	b := begin(false, true, opts)
	page := b.env.servesWebUI()
	a := access{b.env.originGuard(), b.env.allowedHosts()}
	by, streams := b.env.authorization(), b.env.boolean("PERDURE_API_STREAM", "false")
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	h := httpapi.New(b.client(p), b.admin(p), httpapi.WithLogger(b.log))
	if page {
		h = withWebUI(h, a.origins)
	}
	if b.onLambda() && b.getenv(apiAuthorization) == "" { // the stack was deployed by an older release
		b.log.WarnContext(ctx, "callers are not recorded: PERDURE_API_AUTHORIZATION is not set",
			"event", logevent.APICallersUnrecorded, "fix", "deploy the stack with the construct of this release")
	}
	f := b.function(httpHandler(h, by), func(ctx context.Context) error { return b.listen(ctx, p, h, a) })
	if streams {
		f.handler = lambda.NewHandler(withStreams(streamHandler(h, by), b.wrap))
	}
	return f, nil
}

// withWebUI serves the web UI and the API. It does not use a ServeMux, which would clean API paths that contain IDs.
// Browsers can call the API without credentials, or through a proxy that adds them, so guard rejects changes from pages
// of other origins.
func withWebUI(api http.Handler, guard *http.CrossOriginProtection) http.Handler {
	page := ui.Handler()
	return guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ui.Path {
			page.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
}

// binary contains the common settings of the four functions during their construction.
type binary struct {
	settings

	env     *environment
	hub     dynamo.HubConfig
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

// clientOptions returns the options of the function's client.
func (b *binary) clientOptions() []client.Option {
	all := []client.Option{client.WithInterceptors(b.interceptors...)}
	if len(b.codecs) > 0 {
		all = append(all, client.WithCodec(b.codecs[0], b.codecs[1:]...))
	}
	return all
}

// client returns a client that makes calls on behalf of others. Its caller is not the identity of its credentials.
func (b *binary) client(h client.Backend) *client.Client {
	return client.New(h, append(b.clientOptions(), client.WithCaller(""))...)
}

// admin returns a client that operates the hub on behalf of others, like client.
func (b *binary) admin(h admin.Backend) *admin.Client {
	return admin.New(h, admin.WithInterceptors(b.interceptors...), admin.WithCaller(""))
}

func (b *binary) onLambda() bool { return onLambda(b.getenv) }

// open opens the hub, unless an environment variable is invalid.
func (b *binary) open(ctx context.Context) (*dynamo.Provider, error) {
	if err := b.env.err(); err != nil {
		return nil, err
	}
	if byName(b.getenv) {
		p, err := dynamo.Open(ctx, b.getenv("PERDURE_HUB"), b.provide...)
		if err != nil {
			b.env.failf("PERDURE_HUB", "names a hub that cannot be opened: %v", err)
		}
		return p, b.env.err()
	}

	cfg, err := awsConfig(ctx, dynamo.SDKLogger(b.log))
	if err != nil {
		b.env.failf("AWS_*", "cannot be loaded: %v", err)
		return nil, b.env.err()
	}
	p, err := dynamo.New(b.hub, dynamo.FromConfig(cfg), b.provide...)
	if err != nil {
		b.env.failf("PERDURE_*", "are invalid: %v", err)
	}
	return p, b.env.err()
}

// function returns the Function. handler is an argument of lambda.NewHandler.
func (b *binary) function(handler any, poll func(ctx context.Context) error) *Function {
	return &Function{handler: b.wrap(lambda.NewHandler(handler)), poll: poll, log: b.log, onLambda: b.onLambda()}
}

// wrap wraps a handler in the middleware.
func (b *binary) wrap(h lambda.Handler) lambda.Handler {
	for _, wrap := range slices.Backward(b.middleware) {
		h = wrap(h)
	}
	return h
}
