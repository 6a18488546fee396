package lambdahandler

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/client"
)

// authorization is the kind of authorization of the API's gateway. It determines which identity in an event is
// verified. A caller with the permission to invoke the function directly can send any event.
type authorization string

const (
	notAuthorized      authorization = "none"
	authorizedByIAM    authorization = "iam"
	authorizedByJWT    authorization = "jwt"
	authorizedByLambda authorization = "lambda"
)

// httpFunction is a Lambda function behind an HTTP API or a function URL, with the payload format 2.0.
type httpFunction func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// httpHandler returns a function that serves HTTP requests.
func httpHandler(h http.Handler, by authorization) httpFunction {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		r, err := requestOf(client.ContextWithCaller(ctx, by.caller(&e)), &e)
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		w := &response{header: http.Header{}}
		h.ServeHTTP(w, r)
		return w.event(), nil
	}
}

func requestOf(ctx context.Context, e *events.APIGatewayV2HTTPRequest) (*http.Request, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return nil, fmt.Errorf("lambdahandler: decode request body: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("lambdahandler: create request: %w", err)
	}

	// the handler validates the values
	r.Method = e.RequestContext.HTTP.Method
	r.URL = urlOf(e)
	r.Host = e.RequestContext.DomainName
	for name, values := range e.Headers {
		r.Header.Set(name, values) // several values of a name arrive joined by commas
	}
	r.RemoteAddr = e.RequestContext.HTTP.SourceIP
	return r, nil
}

// caller returns the caller that the gateway has verified. It is an IAM ARN, the subject of a token, or the principalId
// of an authorizer function. It is empty if the gateway does not verify callers.
func (by authorization) caller(e *events.APIGatewayV2HTTPRequest) string {
	a := e.RequestContext.Authorizer
	switch {
	case a == nil:
		return ""
	case by == authorizedByIAM && a.IAM != nil:
		return a.IAM.UserARN
	case by == authorizedByJWT && a.JWT != nil:
		return a.JWT.Claims["sub"]
	case by == authorizedByLambda:
		name, _ := a.Lambda["principalId"].(string)
		return name
	default:
		return ""
	}
}

// urlOf returns the URL of a request. A function URL passes the original path. An HTTP API passes the decoded path,
// truncated at an encoded question mark. The parameter of its route may contain the original path.
func urlOf(e *events.APIGatewayV2HTTPRequest) *url.URL {
	u := &url.URL{Scheme: "https", Host: e.RequestContext.DomainName, Path: e.RawPath, RawQuery: e.RawQueryString}
	sent := e.RawPath
	if !strings.Contains(e.RequestContext.DomainName, functionURLHost) {
		sent = "/v1/" + e.PathParameters["proxy"]
	}
	path, err := url.PathUnescape(sent)
	if err != nil {
		path = sent // the gateway has decoded the path
	}

	rest, same := strings.CutPrefix(path, e.RawPath)
	if sent == e.RawPath || same && (rest == "" || strings.HasPrefix(rest, "?") || strings.HasPrefix(rest, "#")) {
		u.Path = path
		u.RawPath = sent
	}
	return u
}

// response is an http.ResponseWriter that collects the response of a handler.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.body.Write(b)
	return n, err //nolint:wrapcheck // a buffer's error is always nil
}

func (w *response) event() events.APIGatewayV2HTTPResponse {
	w.WriteHeader(http.StatusOK)
	return events.APIGatewayV2HTTPResponse{StatusCode: w.status, Headers: joined(w.header), Body: w.body.String()}
}

// joined returns a header with one value for each name.
func joined(header http.Header) map[string]string {
	all := map[string]string{}
	for name, values := range header {
		all[name] = strings.Join(values, ", ")
	}
	return all
}
