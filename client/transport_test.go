package client_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/provider"
)

// overHTTP is the transport of connect: the HTTP API, or the backend itself.
var overHTTP bool

// TestMain runs the tests over both transports.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if listing := flag.Lookup("test.list").Value.String() != ""; code == 0 && !listing {
		overHTTP = true
		code = m.Run()
	}
	os.Exit(code)
}

// connect returns a client of a backend over the transport of the run. Over HTTP, interceptors are options of Dial.
// Options that Dial rejects, such as WithCaller, are those of the API, and all others are options of both.
func connect(b client.Backend, opts ...client.Option) *client.Client {
	if !overHTTP {
		return client.New(b, opts...)
	}
	var ofAPI []client.Option
	ofDial := []client.DialOption{client.WithHTTPClient(&http.Client{Transport: inMemory{handlerOf(b, &ofAPI, opts)}})}
	for _, opt := range opts {
		if opt.ApplyDial(&apiclient.Config{}) == nil {
			ofDial = append(ofDial, opt)
		}
	}
	c, err := client.Dial("http://hub.test", ofDial...)
	if err != nil {
		panic(err)
	}
	return c
}

func handlerOf(b client.Backend, ofAPI *[]client.Option, opts []client.Option) http.Handler {
	for _, opt := range opts {
		var c apiclient.Config
		if err := opt.ApplyDial(&c); err != nil || c.Interceptors == nil {
			*ofAPI = append(*ofAPI, opt)
		}
	}
	operated, _ := b.(admin.Backend) // not every backend of a test has jobs
	return httpapi.New(client.New(b, *ofAPI...), admin.New(operated),
		httpapi.WithLogger(slog.New(slog.DiscardHandler)))
}

// localOnly skips a test over HTTP, for a reason.
func localOnly(t *testing.T, reason string) {
	t.Helper()
	if overHTTP {
		t.Skip("not over HTTP: " + reason)
	}
}

// inMemory is a transport that calls a handler in the goroutine of the request, so that tests can use it in a bubble of
// testing/synctest.
type inMemory struct{ handler http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r.Clone(withoutValues{r.Context()}))
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// withoutValues is a context whose values do not cross the transport.
type withoutValues struct{ context.Context } //nolint:containedctx // it is a context

func (withoutValues) Value(any) any { return nil }

// hasCause reports whether err is the error of a backend. The API logs such an error and returns another one.
func hasCause(err, cause error) bool {
	if !overHTTP {
		return errors.Is(err, cause)
	}
	_, failed := errors.AsType[*provider.Error](err)
	return failed
}
