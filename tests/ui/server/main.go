// Command server serves the web UI with the HTTP API and a hub in memory for make test-ui. The hub has 10,000
// instances, including one with 50,000 events and several with different statuses. The command prints its address and
// exits when its standard input closes.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/ui"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run() error {
	h := &hub{now: time.Now().UTC().Truncate(time.Millisecond)}
	h.Provider = fakeprovider.New(func() time.Time { return h.now })
	h.fill()
	h.Letters = fakeprovider.NewLetters(time.Now, defaultQueue, payments, provider.QueueInbox, provider.QueueTimers)
	h.bury()

	api := httpapi.New(client.New(h, client.WithClock(time.Now)), admin.New(h, admin.WithClock(time.Now)),
		httpapi.WithLogger(slog.New(slog.DiscardHandler)))
	mux := http.NewServeMux()
	s := newStreams(h)
	mux.Handle("/v1/", s.counted(api))
	s.handle(mux)
	mux.Handle(ui.Path, ui.Handler())

	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent process closes it or exits
		os.Exit(0)
	}()
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	server := &http.Server{Handler: guarded(mux, port), ReadHeaderTimeout: 10 * time.Second}
	if err := server.Serve(l); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// guarded protects the server in the same way as perdure ui and a listening API. If PERDURE_UNGUARDED is set, the
// server has no protection, because the signing proxy of make run protects it.
func guarded(h http.Handler, port int) http.Handler {
	if os.Getenv("PERDURE_UNGUARDED") != "" {
		return h
	}
	protected := originguard.AllMethods(originguard.Protection(), h)
	mux := http.NewServeMux()
	mux.Handle("/", protected)
	mux.Handle("GET "+ui.Path, h)
	return originguard.Loopback(port).Handler(mux, "open the address that was printed")
}
