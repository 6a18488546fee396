package httpapi

import (
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Option configures a handler.
type Option func(*handler)

// WithLogger sets the logger of the handler. The default is slog.Default(). Each request is one line, without IDs,
// bodies and headers. Calls that change something have another line with the operation, the instance, job or queue, and
// the caller. Server failures are logged with their error.
func WithLogger(l *slog.Logger) Option { return func(h *handler) { h.log = l } }

// WithClock sets the clock for logged durations and for the readAt of dead letters. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(h *handler) { h.now = now } }

// New returns the handler of the API for the clients of a hub. All its paths begin with /v1. It is safe for concurrent
// use.
func New(c *client.Client, a *admin.Client, opts ...Option) http.Handler {
	return newHandler(c, a, routes(), opts)
}

func newHandler(c *client.Client, a *admin.Client, routes []route, opts []Option) http.Handler {
	h := &handler{client: c, admin: a, log: slog.Default(), mux: http.NewServeMux()}
	h.now = time.Now //nolint:forbidigo // the default clock
	for _, opt := range opts {
		opt(h)
	}
	h.answers = answers{h.log}
	byPath := map[string]endpoint{}
	for _, r := range routes {
		if byPath[r.path] == nil {
			byPath[r.path] = endpoint{}
		}
		byPath[r.path][r.method] = r
	}
	for p, e := range byPath {
		h.mux.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, e) })
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.answers.fail(w, r, noRoute(r.URL.EscapedPath()))
	})
	return h
}

type handler struct {
	client  *client.Client
	admin   *admin.Client
	log     *slog.Logger
	answers answers
	now     func() time.Time
	mux     *http.ServeMux
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.now()
	rec := &recorder{ResponseWriter: w, head: r.Method == http.MethodHead}
	rec.Header().Set("Cache-Control", "no-store")
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() { //nolint:contextcheck // recovered has the request and its context
		h.answers.recovered(rec, r, recover())
		h.log.InfoContext(r.Context(), "request completed", "event", logevent.RequestCompleted, "method", r.Method,
			"route", r.Pattern, "status", rec.status, "took", h.now().Sub(began))
	}()
	if p := r.URL.EscapedPath(); p != path.Clean(p) || p == "*" {
		// the mux would redirect: an empty id would become another call; * has no path
		h.answers.fail(rec, r, noRoute(p))
		return
	} else if strings.Contains(strings.ToLower(p)+"/", "/%2f/") { // the mux takes it for no segment
		h.answers.fail(rec, r, &provider.FieldError{
			Field: fieldPath, Problem: "must not have an encoded / in an id; send ~ and the id's base64url without " +
				"padding: " + escapeID("/"),
		})
		return
	}
	h.mux.ServeHTTP(rec, r)
}

// recovered answers for a handler that panicked. The stack is for the log alone.
func (a answers) recovered(w *recorder, r *http.Request, cause any) {
	if cause == nil {
		return
	}
	a.log.ErrorContext(r.Context(), "request handler panicked", "event", logevent.RequestPanicked, "route", r.Pattern,
		"cause", cause, "stack", string(debug.Stack()))
	if w.status == 0 {
		a.send(w, r, problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: detailInternal})
	}
}

// endpoint is the routes of one path, by method.
type endpoint map[string]route

func (e endpoint) route(method string) (route, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	r, ok := e[method]
	return r, ok
}

func (e endpoint) allowed() string {
	var methods []string
	for m := range e {
		methods = append(methods, m)
	}
	if _, ok := e[http.MethodGet]; ok {
		methods = append(methods, http.MethodHead)
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, e endpoint) {
	rt, ok := e.route(r.Method)
	if !ok {
		w.Header().Set("Allow", e.allowed())
		h.answers.fail(w, r, errMethod)
		return
	}
	if trace := r.Header.Get("Traceparent"); trace != "" {
		r = r.WithContext(perdure.WithTraceParent(r.Context(), trace))
	}
	query, err := parseQuery(r.URL.RawQuery, rt.query)
	if err == nil {
		err = rt.serve(h, w, r, query)
	}
	if err != nil {
		h.answers.fail(w, r, err)
	}
}

// route is one call of the API: its method and path, and the query parameters it takes.
type route struct {
	method, path string
	query        []string
	serve        func(h *handler, w http.ResponseWriter, r *http.Request, query url.Values) error
}

func routes() []route {
	const one = "/v1/instances/{id}"
	return slices.Concat([]route{
		{http.MethodPost, "/v1/orchestrations/{name}", nil, (*handler).start},
		{
			http.MethodGet, "/v1/instances",
			[]string{
				"status", "name", fieldVersion, paramTag, "parent", fieldStartedAfter, fieldStartedBefore, paramLimit,
				paramCursor,
			},
			(*handler).list,
		},
		{http.MethodGet, one, []string{paramPending, paramWaitForStart, paramCost, paramLimit}, (*handler).status},
		{http.MethodPut, one, nil, putInstance},
		{http.MethodDelete, one, []string{paramForce, paramWithChildren, paramCreatedAt}, (*handler).purge},
		{http.MethodGet, "/v1/instances/{id}/result", []string{"wait"}, (*handler).result},
		{http.MethodGet, "/v1/instances/{id}/executions", []string{paramLimit, paramCursor}, (*handler).executions},
		{
			http.MethodGet, "/v1/instances/{id}/history",
			[]string{paramExecution, paramAfter, paramLimit},
			(*handler).history,
		},
		{
			http.MethodGet, "/v1/instances/{id}/cancellations",
			[]string{paramExecution, paramLimit, paramCursor},
			(*handler).cancellations,
		},
		{http.MethodPost, "/v1/instances/{id}/events/{event}", nil, (*handler).raise},
		{http.MethodPost, "/v1/instances/{id}/query", nil, queryInstance},
		{http.MethodPost, "/v1/instances/{id}/update", nil, updateInstance},
		{http.MethodGet, "/v1/entities/{entity}/{key}", nil, entityState},
		{http.MethodPost, "/v1/entities/{entity}/{key}/{operation}", nil, callEntity},
		{http.MethodPost, "/v1/instances/{id}/cancel", nil, (*handler).cancel},
		{http.MethodPost, "/v1/instances/{id}/terminate", nil, (*handler).terminate},
		{http.MethodPost, "/v1/instances/{id}/restart", nil, restart},
		{http.MethodPost, "/v1/instances/{id}/pause", nil, pauseInstance},
		{http.MethodPost, "/v1/instances/{id}/resume", nil, resumeInstance},
		{http.MethodPost, "/v1/instances/{id}/activities/{activityId}/cancel", nil, (*handler).cancelActivity},
		{http.MethodPost, "/v1/jobs", nil, (*handler).bulk},
		{http.MethodGet, "/v1/jobs", nil, (*handler).jobs},
		{http.MethodGet, "/v1/jobs/{jobId}", nil, (*handler).job},
		{http.MethodPost, "/v1/jobs/{jobId}/cancel", nil, (*handler).cancelJob},
		renewRoute(),
		{http.MethodGet, "/v1/openapi.json", nil, (*handler).openAPI},
		{http.MethodGet, "/v1/healthz", nil, (*handler).health},
	}, tokenRoutes(), scheduleRoutes(), letterRoutes())
}
