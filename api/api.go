// Package api is the table of operations of a hub. It states each operation once for all interfaces: the HTTP API and
// its OpenAPI document, the Go clients, the command line, the web UI, the grants of the construct, and the audit log.
//
// Package httpapi registers its routes from the table and writes the audit log from it. Tests compare the other
// interfaces with the table in both directions, so that a missing interface fails a test that names it.
package api

import (
	"net/http"
	"slices"
	"strings"
)

// Operation is one operation of a hub.
type Operation struct {
	// ID is the name of the operation, and its operationId in the OpenAPI document.
	ID string
	// Summary is an imperative phrase.
	Summary string

	// Method and Path are the route of the HTTP API. Operations without a route have the reason in NoRoute.
	Method, Path, NoRoute string
	// Query lists the query parameters that the route accepts.
	Query []string
	// Request is the schema of the request body. It is AnyJSON for any document, and empty without a body.
	Request string
	// Success holds the schema of the response by status. The schema is empty if the response has no named schema.
	Success map[int]string
	// Errors holds the problem codes of the operation by status, without CommonErrors.
	Errors map[int][]string
	// Grant is the grant of the construct that permits the route.
	Grant string

	// Changes reports whether the operation changes anything. Repeat states the effect of a repeated call that changes
	// something.
	Changes bool
	Repeat  Repeat
	Audit   Audit

	// Go lists methods of the clients: client.M, client.Schedules.M and admin.M.
	Go Interface
	// Command lists commands of perdure, without flags.
	Command Interface
	// WebUI lists labels of the web UI.
	WebUI Interface
}

// AnyJSON is the request schema of operations that accept any JSON document.
const AnyJSON = "any JSON"

// Interface lists the names of an operation on an interface, or the reason why it has none.
type Interface struct {
	Names  []string
	Reason string
}

// Repeat states the effect of a repeated call.
type Repeat string

// The effects of a repeated call.
const (
	RepeatNoEffect Repeat = "no effect"
	RepeatByKey    Repeat = "no effect with the same Idempotency-Key"
	RepeatReplaces Repeat = "replaces the value"
	RepeatContinue Repeat = "continues"
	RepeatAgain    Repeat = "takes effect again"
)

// The subjects of audit lines.
const (
	SubjectInstance = "instance"
	SubjectJob      = "job"
	SubjectQueue    = "queue"
)

// Audit describes the line in the log of the API for an accepted call. Action may end with a value of the call in
// braces. Subject is the attribute that has the ID of the changed object. An operation that changes something without a
// line has a Reason.
type Audit struct{ Action, Subject, Reason string }

// ActionFor returns the action with the value in place of the braces.
func (a Audit) ActionFor(value string) string {
	fixed, _, _ := strings.Cut(a.Action, "{")
	return fixed + value
}

// Operations returns a copy of the table. Callers must not modify what the operations refer to.
func Operations() []Operation { return slices.Clone(table) }

var table = slices.Concat(instanceOperations, controlOperations, jobOperations, scheduleOperations,
	deadLetterOperations, activityOperations, hubOperations)

// CommonErrors returns the problem codes that each route can return.
func CommonErrors() map[int][]string {
	return codes{
		http.StatusBadRequest:            {"invalid_request", "no_such_route"},
		http.StatusNotFound:              {"no_such_route"},
		http.StatusMethodNotAllowed:      {"method_not_allowed"},
		http.StatusRequestEntityTooLarge: {"payload_too_large"},
		http.StatusUnsupportedMediaType:  {"unsupported_media_type"},
		http.StatusUnprocessableEntity:   {"answer_too_large"},
		http.StatusInternalServerError:   {"corrupt_history", "internal"},
		http.StatusServiceUnavailable:    {"unavailable"},
	}
}

type (
	codes   = map[int][]string
	schemas = map[int]string
)

// on returns the names of an operation on an interface.
func on(names ...string) Interface { return Interface{Names: names} }

// none returns the reason why an interface does not have an operation.
func none(reason string) Interface { return Interface{Reason: reason} }
