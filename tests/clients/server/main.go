// Command server serves the HTTP API of a hub in memory for make test-clients. The hub has the real engine and provider
// on simulated AWS. In front of the API is a check of tokens that responds like API Gateway, and the protection of a
// listening API. The command prints its address. It exits when its standard input closes, or after ten minutes, so that
// a test that waits for something that does not happen fails.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/internal/simhub"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// longestRun is many times what the tests need.
const longestRun = 10 * time.Minute

func run() error {
	c := &carrier{tokens: map[string]chan string{}}
	h, err := simhub.New(simhub.Options{Registry: c.registry()})
	if err != nil {
		return fmt.Errorf("create hub: %w", err)
	}
	ctx := context.Background()
	go h.Cloud.Serve(ctx) // until the process exits

	api := httpapi.New(client.New(h.Provider, client.WithQuerier(h)), admin.New(h.Provider),
		httpapi.WithLogger(slog.New(slog.DiscardHandler)))
	mux := http.NewServeMux()
	mux.Handle("/v1/", authorized(api))
	mux.HandleFunc("GET /tokens/{id}", c.serveToken)

	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent process closes it or exits
		os.Exit(0)
	}()
	time.AfterFunc(longestRun, func() {
		fmt.Fprintln(os.Stderr, "server: the tests did not end in", longestRun)
		os.Exit(1)
	})
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	guarded := originguard.Loopback(port).Handler(originguard.AllMethods(originguard.Protection(), mux),
		"open the address that was printed")
	s := &http.Server{Handler: guarded, ReadHeaderTimeout: 10 * time.Second}
	if err := s.Serve(l); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// signature is the start of the header Authorization of a request that is signed with SigV4.
const signature = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"

// authorized passes requests with the token "valid" or with a signature, which it does not verify, to next. It rejects
// others like API Gateway with a JWT authorizer and throttling limits.
func authorized(next http.Handler) http.Handler {
	reject := func(w http.ResponseWriter, status int, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"message":"`+message+`"}`)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch by := r.Header.Get("Authorization"); {
		case by == "Bearer valid", strings.HasPrefix(by, signature):
			next.ServeHTTP(w, r)
		case by == "Bearer other":
			reject(w, http.StatusForbidden, "Forbidden")
		case by == "Bearer throttled":
			reject(w, http.StatusTooManyRequests, "Too Many Requests")
		default:
			reject(w, http.StatusUnauthorized, "Unauthorized")
		}
	})
}
