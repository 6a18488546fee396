package mcpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/provider"
)

const (
	// authVariable has the bearer token of the clients.
	authVariable = "PERDURE_MCP_TOKEN"
	// minTokenBytes is the minimum size of the token.
	minTokenBytes = 16
	// path is the path of the server.
	path = "/mcp"

	// sessionTime is the time after which an idle session is closed.
	sessionTime = 15 * time.Minute
	// headerTime limits the read of a request's header, and idleTime an idle connection.
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	// closeTime is the time for open requests after the command is interrupted.
	closeTime = 2 * time.Second
)

// serveHTTP serves clients over HTTP, and prints the URL, until ctx ends.
func serveHTTP(ctx context.Context, env *cli.Env, listen string, allowed map[string]bool) error {
	address, err := loopbackAddress(listen)
	if err != nil {
		return err
	}
	token := env.Getenv(authVariable)
	if len(token) < minTokenBytes {
		return &provider.FieldError{
			Field: authVariable, Problem: fmt.Sprintf("must be a secret of at least %d characters for --listen, "+
				"such as the output of openssl rand -hex 32", minTokenBytes),
		}
	}
	h, err := env.Open(ctx)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("mcp: %w; set --listen to another port", err)
	}
	at := l.Addr().(*net.TCPAddr) //nolint:forcetypeassert // of a TCP listener
	s := &http.Server{
		Handler:           newHandler(New(ctx, env, h, allowed), token, at),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	url := fmt.Sprintf("http://%s%s", l.Addr(), path)
	if err = env.PrintResult(map[string]string{"url": url}, url+"\n"); err == nil {
		select {
		case err = <-done:
		case <-ctx.Done():
		}
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	if s.Shutdown(closing) != nil {
		_ = s.Close() // aborts the remaining requests, such as open event streams
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("mcp: %w", err)
	}
	return nil
}

// newHandler serves clients that have the token, under the loopback names of this machine. It rejects requests of web
// pages of other origins.
func newHandler(m *mcp.Server, token string, at *net.TCPAddr) http.Handler {
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m }, &mcp.StreamableHTTPOptions{
		SessionTimeout: sessionTime, MaxRequestBodyBytes: maxMessageBytes, PropagateRequestCancellation: true,
	})
	mux := http.NewServeMux()
	mux.Handle(path, originguard.AllMethods(originguard.Protection(), requireToken(token, streamable)))
	return originguard.ForAddress(at).Handler(mux, "use the URL that perdure mcp printed")
}

// requireToken rejects requests without the bearer token.
func requireToken(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(sent)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send the token of "+authVariable+" as a bearer token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
