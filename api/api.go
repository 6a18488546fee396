// Package api contains the table of all operations of a hub. The table defines each operation once for all interfaces:
// the HTTP API with its OpenAPI document, the Go clients, the command line, the web UI, the grants of the CDK
// construct, and the audit log.
//
// Package httpapi registers its routes from the table and writes the audit log from it. Tests compare the other
// interfaces with the table. A missing entry on either side fails a test that names the entry.
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

	// Method and Path are the route of the HTTP API. If the operation has no route, NoRoute is the reason.
	Method, Path, NoRoute string
	// Query lists the query parameters that the route accepts.
	Query []string
	// Request is the schema of the request body. It is AnyJSON if the route accepts any document, and empty if the
	// request has no body.
	Request string
	// Success maps each success status to the schema of the response. The schema is empty if the response has no named
	// schema.
	Success map[int]string
	// Errors maps each error status to the problem codes of the operation, without CommonErrors.
	Errors map[int][]string
	// Grant is the grant of the construct that permits the route.
	Grant string

	// Changes is true if the operation changes the hub. Repeat is then the effect of a repeated call.
	Changes bool
	Repeat  Repeat
	Audit   Audit

	// Go lists the methods of the clients, such as client.Start, client.Schedules.Put and admin.StartJob.
	Go Interface
	// Command lists the perdure commands, without flags.
	Command Interface
	// WebUI lists the labels of the web UI.
	WebUI Interface
}

// RequireKey is the query parameter of operations that did not observe the Idempotency-Key in earlier releases. If its
// value is true, the call requires the key. An API that ignores the key rejects the parameter.
const RequireKey = "requireKey"

// AnyJSON is the request schema of operations that accept any JSON document.
const AnyJSON = "any JSON"

// Interface lists the names of an operation on an interface, or the reason why the interface does not have the
// operation.
type Interface struct {
	Names  []string
	Reason string
}

// Repeat is the effect of a repeated call.
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

// Audit describes the audit line of an accepted call. Action can end with a placeholder in braces for a value of the
// call. Subject is the attribute that contains the ID of the changed object. If an operation that changes the hub has
// no audit line, Reason is the reason.
type Audit struct{ Action, Subject, Reason string }

// ActionFor returns the action with value in place of the placeholder.
func (a Audit) ActionFor(value string) string {
	fixed, _, _ := strings.Cut(a.Action, "{")
	return fixed + value
}

// Operations returns a copy of the table. Callers must not modify the slices and maps of the operations.
func Operations() []Operation { return slices.Clone(table) }

var table = slices.Concat(instanceOperations, controlOperations, jobOperations, scheduleOperations,
	deadLetterOperations, activityOperations, hubOperations)

// CommonErrors returns the problem codes that each route can return.
func CommonErrors() map[int][]string {
	return codes{
		http.StatusBadRequest:            {"invalid_request"},
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

// on returns an Interface that has the operation under these names.
func on(names ...string) Interface { return Interface{Names: names} }

// none returns an Interface that does not have the operation, with the reason.
func none(reason string) Interface { return Interface{Reason: reason} }
