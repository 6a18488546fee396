package webui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/ui"
)

// apiFor returns the API that the page asks: of the hub's resources, or of an endpoint.
func API(ctx context.Context, c *cli.Env, endpoint string) (http.Handler, error) {
	if endpoint == "" {
		h, err := c.OpenHub(ctx, c.HubName)
		if err != nil {
			return nil, &cli.OpenError{Cause: err}
		}
		log := slog.New(slog.DiscardHandler)
		return httpapi.New(h.Client, h.Admin, httpapi.WithLogger(log), httpapi.WithClock(c.Now)), nil
	}

	to, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(endpoint, "/"), "/v1"))
	if err != nil || to.Host == "" || to.Scheme != "https" && to.Scheme != "http" {
		return nil, fmt.Errorf("--api must be the URL of an endpoint, "+
			"such as https://a1b2c3d4.execute-api.eu-west-1.amazonaws.com, is %q", endpoint)
	}
	transport, err := transportFor(ctx, to)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			for _, name := range []string{"Cookie", "Origin", "Referer", "Authorization"} { // the browser's own are nobody else's business
				r.Out.Header.Del(name)
			}
		},
		ModifyResponse: removeHeaders,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the page has left the view that asked
			}
			fmt.Fprintln(c.Stderr, "perdure: API request failed: "+term.OneLine(err.Error()))
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprintf(w, `{"type":"about:blank","title":"Bad Gateway","status":502,"code":"unavailable","retryable":true,"detail":%s}`, strconv.Quote("the API at "+to.Host+" was not reached"))
		},
	}, nil
}

// uiHandler serves the page, and the API at its side, under the names of this machine's loopback alone. Requests to the
// API from a page of another origin are rejected, reads too.
func newHandler(api http.Handler, port int) http.Handler {
	protection := originguard.Protection()
	mux := http.NewServeMux()
	mux.Handle(ui.Path, ui.Handler())
	mux.Handle("/v1/", withAPIHeaders(originguard.AllMethods(protection, api)))
	mux.Handle("GET /{$}", http.RedirectHandler(ui.Path, http.StatusFound))
	return originguard.Loopback(port).Handler(protection.Handler(mux), "open the URL that perdure ui printed")
}

// ownHeaders are of every answer of the API: a browser that is led to one shows it, and runs nothing of it in the origin of the page.
var apiHeaders = map[string]string{
	"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; sandbox", "Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
}

// ownPage sets the headers of the API's responses, and rejects upgrades, which would bypass them.
func withAPIHeaders(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range apiHeaders {
			w.Header().Set(name, value)
		}
		if r.Header.Get("Upgrade") != "" {
			http.Error(w, "the API does not support protocol upgrades", http.StatusForbidden)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// ownAnswer takes from an endpoint's answer what would let it act in the origin of the page.
func removeHeaders(answer *http.Response) error {
	for name := range answer.Header {
		if _, own := apiHeaders[name]; own || name == "Set-Cookie" || strings.HasPrefix(name, "Access-Control-") {
			answer.Header.Del(name)
		}
	}
	return nil
}

const (
	// closeTime is how long requests may take that are under way at the end.
	closeTime = 2 * time.Second
	// requestTime is for reading the headers and the body of a request, not for handling it.
	requestTime = 10 * time.Second
	// idleTime is how long a connection stays open without a request.
	idleTime = 2 * time.Minute
)

// newUIServer returns the server of the page and the API on a port of loopback.
func newServer(api http.Handler, port int) *http.Server {
	return &http.Server{
		Handler: newHandler(api, port), ReadTimeout: requestTime, IdleTimeout: idleTime,
		DisableGeneralOptionsHandler: true,
	}
}

// serveUI serves until ctx ends.
func Serve(ctx context.Context, c *cli.Env, port int, api http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("ui: %w; set --port to another port", err)
	}
	at := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	address := fmt.Sprintf("http://127.0.0.1:%d%s", at, ui.Path)

	s := newServer(api, at)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	if c.JSON {
		err = c.PrintJSON(map[string]string{"url": address})
	} else {
		err = c.Print(address + "\n")
		fmt.Fprintln(c.Stderr, "press Ctrl-C to stop")
	}

	if err == nil {
		select {
		case err = <-done:
		case <-ctx.Done():
		}
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	_ = s.Shutdown(closing) // what is left is cut off
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("ui: %w", err)
	}
	return nil
}
