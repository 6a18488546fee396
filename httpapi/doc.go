// Package httpapi is the HTTP API of a task hub: a net/http handler on top of its clients, and its OpenAPI document.
//
//	hub, err := dynamo.Open(ctx, "orders")
//	if err != nil {
//		return err
//	}
//	err = http.ListenAndServe("localhost:8080", httpapi.New(client.New(hub), admin.New(hub)))
//
// GET /v1/openapi.json returns the OpenAPI document. Requests and responses are JSON. A request with a body requires
// the header Content-Type: application/json; otherwise the response is 415.
//
// A failed call returns application/problem+json (RFC 9457). The member code identifies the problem for programs, field
// names the invalid input, and retryable reports whether the same call can succeed later.
//
// The handler does not authenticate callers. Put a gateway in front of it, such as API Gateway with IAM.
package httpapi
