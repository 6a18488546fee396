// Package webui serves the web UI on this machine, with the API of a hub or of an endpoint.
package webui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/ui"
)

// API returns a handler that forwards to the API of an endpoint, or the API of the hub if endpoint is empty.
func API(ctx context.Context, env *cli.Env, endpoint string) (http.Handler, error) {
	if endpoint == "" {
		h, err := env.Open(ctx)
		if err != nil {
			return nil, err
		}
		log := slog.New(slog.DiscardHandler)
		return httpapi.New(h.Client, h.Admin, httpapi.WithLogger(log), httpapi.WithClock(env.Now)), nil
	}

	to, err := env.Authorizer().Dial(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: &authorizer{api: to, next: http.DefaultTransport},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to.Endpoint)
			for _, name := range privateHeaders {
				r.Out.Header.Del(name)
			}
		},
		ModifyResponse: removeHeaders,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the web UI has cancelled the request
			}
			fmt.Fprintln(env.Stderr, "perdure: API request failed: "+term.OneLine(err.Error()))
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprintf(w, `{"type":"about:blank","title":"Bad Gateway","status":502,"code":"unavailable",`+
				`"retryable":true,"detail":%s}`, strconv.Quote("cannot reach the API at "+to.Endpoint.Host))
		},
	}, nil
}

// privateHeaders are the headers of the browser that an endpoint must not receive.
var privateHeaders = []string{"Cookie", "Origin", "Referer", "Authorization"}

// newHandler serves the web UI and the API under the loopback names of this machine only. It rejects all requests to
// the API from pages of other origins.
func newHandler(api http.Handler, port int) http.Handler {
	protection := originguard.Protection()
	mux := http.NewServeMux()
	mux.Handle(ui.Path, ui.Handler())
	mux.Handle("/v1/", withAPIHeaders(originguard.AllMethods(protection, api)))
	mux.Handle("GET /{$}", http.RedirectHandler(ui.Path, http.StatusFound))
	return originguard.Loopback(port).Handler(protection.Handler(mux), "open the URL that perdure ui printed")
}

// apiHeaders are the headers of every response of the API. They prevent a browser that navigates to a response from
// running code in the origin of the web UI.
var apiHeaders = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; sandbox",
	"Cross-Origin-Resource-Policy": "same-origin",
	"X-Content-Type-Options":       "nosniff",
}

// withAPIHeaders sets apiHeaders, and rejects protocol upgrades, which would bypass them.
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

// removeHeaders removes the headers of an endpoint's response that could affect the origin of the web UI.
func removeHeaders(response *http.Response) error {
	for name := range response.Header {
		if _, own := apiHeaders[name]; own || name == "Set-Cookie" || strings.HasPrefix(name, "Access-Control-") {
			response.Header.Del(name)
		}
	}
	return nil
}

const (
	// closeTime is the time that open requests have to end after the command is interrupted.
	closeTime = 2 * time.Second
	// requestTime is the time limit for reading a request. It does not limit the handling of the request.
	requestTime = 10 * time.Second
	// idleTime is the time after which an idle connection is closed.
	idleTime = 2 * time.Minute
)

// newServer returns the server for a port of loopback.
func newServer(api http.Handler, port int) *http.Server {
	return &http.Server{
		Handler: newHandler(api, port), ReadTimeout: requestTime, IdleTimeout: idleTime,
		DisableGeneralOptionsHandler: true,
	}
}

// Serve serves the web UI and prints its URL, until ctx ends.
func Serve(ctx context.Context, env *cli.Env, port int, api http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("ui: %w; set --port to another port", err)
	}
	at := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	address := fmt.Sprintf("http://127.0.0.1:%d%s", at, ui.Path)

	s := newServer(api, at)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	if env.JSON {
		err = env.PrintJSON(map[string]string{"url": address})
	} else {
		err = env.Print(address + "\n")
		fmt.Fprintln(env.Stderr, "press Ctrl-C to stop")
	}

	if err == nil {
		select {
		case err = <-done:
		case <-ctx.Done():
		}
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	_ = s.Shutdown(closing) // the remaining requests are aborted
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("ui: %w", err)
	}
	return nil
}
