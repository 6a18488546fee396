package lambdahandler

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

const streamEvent = `{"version":"2.0","rawPath":"/v1/instances/a/events/stream","requestContext":{"domainName":` +
	`"x.lambda-url.eu-west-1.on.aws","http":{"method":"GET"}}}`

// ticking writes three lines, a second apart.
func ticking() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusAccepted)
		for range 3 {
			time.Sleep(time.Second)
			if _, err := io.WriteString(w, "tick\n"); err != nil || r.Context().Err() != nil {
				return
			}
		}
	})
}

func decodeEvent(t *testing.T, text string) (e events.APIGatewayV2HTTPRequest) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStreamHandler_functionURL_sendsPartsAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		response, err := streamHandler(ticking(), authorizedByIAM)(t.Context(), decodeEvent(t, streamEvent))
		if err != nil || time.Since(from) > 0 {
			t.Fatalf("after %s: %v", time.Since(from), err)
		}
		r := response.(*events.LambdaFunctionURLStreamingResponse)
		if r.StatusCode != http.StatusAccepted || r.Headers["Content-Type"] != "text/event-stream" {
			t.Errorf("%+v", r)
		}
		b := make([]byte, 100)
		for i := range 3 {
			n, err := r.Body.Read(b)
			took := time.Since(from)
			if err != nil || string(b[:n]) != "tick\n" || took != time.Duration(i+1)*time.Second {
				t.Errorf("after %s: %q, %v", took, b[:n], err)
			}
		}
		if _, err := r.Body.Read(b); err != io.EOF {
			t.Error(err)
		}
	})
}

// The goroutine of a response ends when Lambda closes the body, and when the invocation ends: the bubble waits for it.
func TestStreamHandler_unreadResponse_ends(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*events.LambdaFunctionURLStreamingResponse, context.CancelFunc){
		"closed":           func(r *events.LambdaFunctionURLStreamingResponse, _ context.CancelFunc) { _ = r.Close() },
		"invocation ended": func(_ *events.LambdaFunctionURLStreamingResponse, cancel context.CancelFunc) { cancel() },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ended atomic.Bool
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer ended.Store(true)
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, "tick\n")
				}
			})
			response, err := streamHandler(h, authorizedByIAM)(ctx, decodeEvent(t, streamEvent))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if ended.Load() {
				t.Errorf("%s: ended without a reader", name)
			}
			end(response.(*events.LambdaFunctionURLStreamingResponse), cancel)
			if synctest.Wait(); !ended.Load() {
				t.Errorf("%s: did not end", name)
			}
		})
	}
}

func TestStreamHandler_httpAPI_buffersResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := decodeEvent(t, strings.Replace(streamEvent, "x.lambda-url.eu-west-1.on.aws", "x.example", 1))
		response, err := streamHandler(ticking(), authorizedByIAM)(t.Context(), e)
		got, buffered := response.(events.APIGatewayV2HTTPResponse)
		if err != nil || !buffered || got.Body != strings.Repeat("tick\n", 3) || got.StatusCode != http.StatusAccepted {
			t.Errorf("%+v, %v", response, err)
		}
	})
}

// Middleware sees the event of a request, and the response of other gateways, but does not read a stream.
func TestWithStreams_middleware_doesNotReadTheStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := []string{}
		h := withStreams(streamHandler(ticking(), authorizedByIAM), func(next lambda.Handler) lambda.Handler {
			return middleware(func(ctx context.Context, payload []byte) ([]byte, error) {
				response, err := next.Invoke(ctx, payload)
				seen = append(seen, string(bytes.TrimSpace(response)))
				return response, err
			})
		})
		from := time.Now()
		response, err := h(t.Context(), json.RawMessage(streamEvent))
		if err != nil || time.Since(from) > 0 {
			t.Fatalf("after %s: %v", time.Since(from), err)
		}
		body, err := io.ReadAll(response.(io.Reader))
		prelude, rest, found := bytes.Cut(body, make([]byte, 8))
		if err != nil || !found || string(rest) != strings.Repeat("tick\n", 3) || !strings.Contains(string(prelude), "202") {
			t.Errorf("%q, %v", body, err)
		}
		buffered := strings.Replace(streamEvent, "x.lambda-url.eu-west-1.on.aws", "x.example", 1)
		response, err = h(t.Context(), json.RawMessage(buffered))
		if got, ok := response.(json.RawMessage); err != nil || !ok || !strings.Contains(string(got), `tick\ntick`) {
			t.Errorf("%v, %v", response, err)
		}
		if len(seen) != 2 || seen[0] != "null" || !strings.Contains(seen[1], "tick") {
			t.Errorf("middleware saw %q", seen)
		}
	})
}

// middleware is a lambda.Handler.
type middleware func(context.Context, []byte) ([]byte, error)

// Invoke implements lambda.Handler.
func (m middleware) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return m(ctx, payload)
}

// A stream ends when the process stops, before the time for running requests has passed.
func TestEndStreams_processStops_endsStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		h := endStreams(ctx, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		time.AfterFunc(time.Minute, stop)
		from := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/instances/a/events/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		if h.ServeHTTP(nil, r); time.Since(from) != time.Minute {
			t.Errorf("ended after %s", time.Since(from))
		}
	})
}

func TestEndStreams_eventNamedStream_isRaised(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		h := endStreams(ctx, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			stop()
			if synctest.Wait(); r.Context().Err() != nil {
				t.Error("the end of the process aborts the request")
			}
		}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/instances/a/events/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		h.ServeHTTP(nil, r)
	})
}

// The server limits the time of requests and responses, but not that of a stream. The end of the process ends a stream.
func TestServeHTTP_stream_lastsUntilTheProcessStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := inMemory(t).Provider
		c := client.New(p)
		if _, err := c.Start(t.Context(), "hello", 1, client.WithInstanceID("a")); err != nil {
			t.Fatal(err)
		}
		api := httpapi.New(c, admin.New(p), httpapi.WithLogger(slog.New(slog.DiscardHandler)))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		conns, served := make(chan net.Conn), make(chan error)
		go func() { served <- serveHTTP(ctx, memoryListener{conns, ctx}, api) }()
		here, there := net.Pipe()
		defer here.Close()
		conns <- there
		go func() {
			_, _ = io.WriteString(here, "GET /v1/instances/a/events/stream HTTP/1.1\r\nHost: x\r\n\r\n")
		}()
		a, err := http.ReadResponse(bufio.NewReader(here), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		from := time.Now()
		time.AfterFunc(5*time.Minute, stop)
		body, err := io.ReadAll(a.Body)
		if took := time.Since(from); err != nil || took != 5*time.Minute {
			t.Errorf("ended after %s: %v", took, err)
		}
		if n := bytes.Count(body, []byte(": keep-alive")); n < 18 || !bytes.Contains(body, []byte("id: ")) {
			t.Errorf("%d comments in %s", n, body)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
