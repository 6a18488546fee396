package lambdahandler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/perdure/perdure/client"
)

// functionURLHost is part of the domain name of each function URL.
const functionURLHost = ".lambda-url."

// streamHandler returns a function that streams its responses to a function URL with the invoke mode RESPONSE_STREAM.
// It serves other gateways, which buffer responses, like httpHandler.
func streamHandler(
	h http.Handler, by authorization,
) func(context.Context, events.APIGatewayV2HTTPRequest) (any, error) {
	buffered := httpHandler(h, by)
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (any, error) {
		if !strings.Contains(e.RequestContext.DomainName, functionURLHost) {
			return buffered(ctx, e)
		}
		r, err := requestOf(client.ContextWithCaller(ctx, by.caller(&e)), &e)
		if err != nil {
			return nil, err
		}
		return streamed(h, r), nil
	}
}

// errClosed means that Lambda reads no more of a response.
var errClosed = errors.New("lambdahandler: response stream closed")

// streamed serves a request in another goroutine, and returns its response when the header is complete.
func streamed(h http.Handler, r *http.Request) *events.LambdaFunctionURLStreamingResponse {
	ctx, cancel := context.WithCancel(r.Context())
	from, to := io.Pipe()
	w := &streamWriter{header: http.Header{}, body: to, begun: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = to.CloseWithError(context.Cause(ctx)) }) // ends a blocked write
	go func() {
		defer cancel()
		defer stop()
		defer func() { _ = to.Close() }() // it has no error
		defer w.WriteHeader(http.StatusOK)
		h.ServeHTTP(w, r.WithContext(ctx))
	}()
	<-w.begun
	return &events.LambdaFunctionURLStreamingResponse{
		StatusCode: w.status, Headers: w.sent, Body: closer{from, cancel},
	}
}

// closer is the body of a response. The runtime closes it after the last read, and when Lambda ends the response.
// Lambda does not promise to end the response when the caller has disconnected. The request then runs until its
// invocation ends.
type closer struct {
	*io.PipeReader

	cancel context.CancelFunc
}

// Close ends the request.
func (c closer) Close() error {
	c.cancel()
	return c.CloseWithError(errClosed) //nolint:wrapcheck // it returns nil
}

// streamWriter writes a response that is sent while it is written.
type streamWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed when status and sent are set
	status int
	sent   map[string]string
}

// Header implements http.ResponseWriter.
func (w *streamWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *streamWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, joined(w.header)
		close(w.begun)
	})
}

// Write implements http.ResponseWriter. It returns when Lambda has read b.
func (w *streamWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b) //nolint:wrapcheck // the pipe's error
}

// Flush implements http.Flusher: nothing is buffered.
func (w *streamWriter) Flush() { w.WriteHeader(http.StatusOK) }

// streamKey is the context key of the *stream of an invocation.
type streamKey struct{}

// stream holds the response of an invocation while middleware runs, which can only return bytes.
type stream struct{ response io.Reader }

// withStreams wraps a handler in middleware that does not read the responses that are streamed.
func withStreams(
	handler func(context.Context, events.APIGatewayV2HTTPRequest) (any, error),
	wrap func(lambda.Handler) lambda.Handler,
) func(context.Context, json.RawMessage) (any, error) {
	inner := lambda.NewHandler(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (any, error) {
		response, err := handler(ctx, e)
		body, streams := response.(io.Reader)
		if held, ok := ctx.Value(streamKey{}).(*stream); ok && streams && err == nil {
			held.response = body
			return nil, nil //nolint:nilnil // the response is in the context
		}
		return response, err
	})
	outer := wrap(inner)
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		held := &stream{}
		response, err := outer.Invoke(context.WithValue(ctx, streamKey{}, held), payload)
		switch {
		case err != nil:
			return nil, fmt.Errorf("lambdahandler: %w", err)
		case held.response != nil:
			return held.response, nil
		default:
			return json.RawMessage(response), nil
		}
	}
}
