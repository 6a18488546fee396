package httpapi

import (
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Option configures a handler.
type Option func(*handler)

// WithLogger sets the logger of the handler. The default is slog.Default(). The handler logs one line per request,
// without IDs, bodies and headers. For a call that changes something, it logs another line with the operation, the
// instance, job or queue, and the caller. It logs server failures with their error.
func WithLogger(l *slog.Logger) Option { return func(h *handler) { h.log = l } }

// WithClock sets the clock for logged durations and for the readAt of dead letters. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(h *handler) { h.now = now } }

// New returns the handler of the API for the clients of a hub. All its paths begin with /v1. It is safe for concurrent
// use.
func New(c *client.Client, a *admin.Client, opts ...Option) http.Handler {
	h := newHandler(opts)
	h.register(api.Operations(), h.functions(c, a))
	return h
}

func newHandler(opts []Option) *handler {
	h := &handler{log: slog.Default(), mux: http.NewServeMux()}
	h.now = time.Now //nolint:forbidigo // the default clock
	for _, opt := range opts {
		opt(h)
	}
	h.errors = response.Errors{Log: h.log}
	return h
}

type handler struct {
	log    *slog.Logger
	now    func() time.Time
	errors response.Errors
	mux    *http.ServeMux
}

// functions maps the ID of an operation to the function that serves the operation.
type functions map[string]func(*call) error

// register registers a route for each operation with a path. It panics if an operation has no function, or if a
// function has no operation.
func (h *handler) register(operations []api.Operation, serve functions) {
	byPath := map[string]endpoint{}
	for i := range operations {
		o := &operations[i]
		if o.Path == "" {
			continue
		}
		if serve[o.ID] == nil {
			panic("httpapi: no function serves the operation " + o.ID)
		}
		if byPath[o.Path] == nil {
			byPath[o.Path] = endpoint{}
		}
		byPath[o.Path][o.Method] = route{operation: o, serve: serve[o.ID]}
		delete(serve, o.ID)
	}
	shareEventNames(byPath)
	for id := range serve {
		panic("httpapi: the table of operations has no route for " + id)
	}
	for p, e := range byPath {
		h.mux.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, e) })
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.errors.Fail(w, r, noRoute(r.URL.EscapedPath()))
	})
}

// shareEventNames adds the methods of {event} to the other paths below events, because an external event can have the
// name of their last segment.
func shareEventNames(byPath map[string]endpoint) {
	for p, e := range byPath {
		for method, rt := range byPath[path.Dir(p)+"/{"+paramEvent+"}"] {
			if _, own := e[method]; !own {
				rt.event = path.Base(p)
				e[method] = rt
			}
		}
	}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.now()
	rec := &response.Recorder{ResponseWriter: w, Head: r.Method == http.MethodHead}
	rec.Header().Set("Cache-Control", "no-store")
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() { //nolint:contextcheck // Panicked has the request and its context
		if cause := recover(); cause != nil {
			h.errors.Panicked(rec, r, cause)
		}
		h.log.InfoContext(r.Context(), "request completed", "event", logevent.RequestCompleted, "method", r.Method,
			"route", r.Pattern, "status", rec.Status, "took", h.now().Sub(began))
	}()
	if p := r.URL.EscapedPath(); p != path.Clean(p) || p == "*" {
		// the mux would redirect, and an empty ID would select another route; * has no path
		h.errors.Fail(rec, r, noRoute(p))
		return
	} else if strings.Contains(strings.ToLower(p)+"/", "/%2f/") { // the mux would not match the segment
		h.errors.Fail(rec, r, &provider.FieldError{
			Field: problem.FieldPath, Problem: "must not have an encoded / in an id; send ~ and the id's base64url " +
				"without padding: " + request.EscapeID("/"),
		})
		return
	}
	if method := apiwire.Impersonates(r.URL.Path); method != "" {
		h.errors.Fail(rec, r, &provider.FieldError{
			Field: problem.FieldPath, Problem: "must not have " + method + " before v1; send the id as ~ and its " +
				"base64url without padding: " + request.EscapeID(method),
		})
		return
	}
	h.mux.ServeHTTP(rec, r)
}

// route is an operation with the function that serves it.
type route struct {
	operation *api.Operation
	serve     func(*call) error
	event     string // the event of a path that has a literal segment in its place
}

// endpoint maps the methods of a path to routes.
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
		h.errors.Fail(w, r, problem.ErrMethod)
		return
	}
	if rt.event != "" {
		r.SetPathValue(paramEvent, rt.event)
		r.Pattern = rt.operation.Path
	}
	if trace := r.Header.Get("Traceparent"); trace != "" {
		r = r.WithContext(perdure.WithTraceParent(r.Context(), trace))
	}
	query, err := request.Query(r.URL.RawQuery, rt.operation.Query)
	if err == nil {
		err = rt.serve(&call{w: w, r: r, query: query, operation: rt.operation, log: h.log})
	}
	if err != nil {
		h.errors.Fail(w, r, err)
	}
}
