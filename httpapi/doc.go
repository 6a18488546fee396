// Package httpapi is the HTTP API of a task hub: a net/http handler over a client, and the OpenAPI document that describes it.
//
// Requests and answers are JSON; a failed call answers an application/problem+json with a code, whether repeating it may
// help, and the field at fault.
//
// A request with a body requires the header Content-Type: application/json; otherwise the handler responds with status
// 415. A browser sends a body of another type, or without a type, to another origin without asking that origin, so a
// missing type is not taken for JSON.
//
// The handler does not authenticate: what stands before it does (API Gateway with IAM).
package httpapi
