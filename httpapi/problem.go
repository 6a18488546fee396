package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// The codes of problems, for programs. They only grow.
const (
	codeInvalidRequest       = "invalid_request"
	codeNoRoute              = "no_such_route"
	codeMethod               = "method_not_allowed"
	codeUnknownOrchestration = "unknown_orchestration"
	codeInstanceNotFound     = "instance_not_found"
	codeExecutionNotFound    = "execution_not_found"
	codeActivityNotFound     = "activity_not_found"
	codeJobNotFound          = "job_not_found"
	codeNoDeadLetters        = "no_dead_letters"
	codeDeadLetterNotFound   = "dead_letter_not_found"
	codeInstanceIDInUse      = "instance_id_in_use"
	codeInstanceOver         = "instance_over"
	codeInstanceNotOver      = "instance_not_over"
	codeNotCancellable       = "not_cancellable"
	codePayloadTooLarge      = "payload_too_large"
	codeAnswerTooLarge       = "answer_too_large"
	codeMediaType            = "unsupported_media_type"
	codeCorruptHistory       = "corrupt_history"
	codeUnavailable          = "unavailable"
	codeInternal             = "internal"
)

// The fields at fault that more than one place names.
const (
	fieldInstanceID    = "instanceId"
	fieldScheduleID    = "scheduleId"
	fieldEntity        = "entity"
	fieldKey           = "key"
	fieldMessage       = "message"
	fieldError         = "error"
	fieldActivityID    = "activityId"
	fieldJobID         = "jobId"
	fieldQueue         = "queue"
	fieldDeadLetterID  = "deadLetterId"
	fieldSentBefore    = "sentBefore"
	fieldAll           = "all"
	fieldIDs           = "ids"
	fieldOrchestration = "orchestration"
	fieldDelay         = "delay"
	fieldIfExists      = "ifExists"
	fieldPath          = "path"
	fieldFrom          = "from"
	fieldVersion       = "version"
	fieldStartedAfter  = "startedAfter"
	fieldStartedBefore = "startedBefore"
)

const (
	headerKey      = "Idempotency-Key"
	headerType     = "Content-Type"
	headerLocation = "Location"
)

// detailInternal is the detail of errors whose cause only the log may have.
const detailInternal = "internal error; see the log of the API"

// problem is the body of a failed call (RFC 9457).
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"` // the same call may succeed later
	Field     string `json:"field,omitempty"`
	// Details are what the instance's code has given the error that it answers with.
	Details json.RawMessage `json:"details,omitempty"`
	// Existing is the instance that has the id of a start.
	Existing *existing `json:"existing,omitempty"`
}

// existing is what a start whose id is in use tells of the instance that has it.
type existing struct {
	Orchestration string               `json:"orchestration"`
	Status        client.RuntimeStatus `json:"status"`
	CreatedAt     time.Time            `json:"createdAt"`
}

// Error makes a problem an error, so that a handler can return the one it knows best.
func (p *problem) Error() string { return p.Code + ": " + p.Detail }

var (
	errNoRoute = &problem{
		Status: http.StatusNotFound, Code: codeNoRoute,
		Detail: "unknown path; see GET /v1/openapi.json. An id with a slash is sent as ~ and its base64url without " +
			"padding",
	}
	errMediaType = &problem{
		Status: http.StatusUnsupportedMediaType, Code: codeMediaType, Field: headerType,
		Detail: "a request with a body requires the header Content-Type: application/json and UTF-8",
	}
	errMethod = &problem{
		Status: http.StatusMethodNotAllowed, Code: codeMethod,
		Detail: "method not allowed for this path; see the Allow header and GET /v1/openapi.json",
	}
)

// unknownOrchestration is the problem of a start of an orchestration that no build registers.
var unknownOrchestration = problem{
	Status: http.StatusNotFound, Code: codeUnknownOrchestration, Field: fieldOrchestration,
	Detail: "no deployed build has this orchestration in this version; a new deployment takes a few seconds " +
		"to become visible",
}

// problemOf is the problem that the caller is sent for an error: never with the error's own text, unless that is about
// the caller's input.
func problemOf(err error) problem {
	var (
		known    *problem
		field    *provider.FieldError
		tooLarge *perdure.PayloadTooLargeError
		token    *client.TokenError
	)
	if p, ok := askingProblem(err); ok {
		return p
	}
	switch {
	case errors.As(err, &known):
		return *known
	case errors.As(err, &token):
		return tokenProblem(token)
	case errors.As(err, &field):
		return problem{
			Status: http.StatusBadRequest, Code: codeInvalidRequest, Detail: field.Error(), Field: field.Field,
		}
	case errors.As(err, &tooLarge):
		return problem{
			Status: http.StatusRequestEntityTooLarge, Code: codePayloadTooLarge, Detail: tooLarge.Error(),
			Field: tooLarge.Name,
		}
	case errors.Is(err, client.ErrUnknownOrchestration):
		return unknownOrchestration
	case errors.Is(err, client.ErrAlreadyExists):
		return takenProblem(err)
	case errors.Is(err, client.ErrEnded):
		return problem{
			Status: http.StatusGone, Code: codeInstanceOver, Detail: "instance has ended", Field: fieldInstanceID,
		}
	case errors.Is(err, client.ErrNotEnded):
		return problem{
			Status: http.StatusConflict, Code: codeInstanceNotOver, Field: fieldInstanceID,
			Detail: "instance has not ended; cancel or terminate it first, or purge it with force=true",
		}
	case errors.Is(err, client.ErrNotCancellable):
		return problem{
			Status: http.StatusConflict, Code: codeNotCancellable, Field: fieldActivityID,
			Detail: "activity is neither pending nor running",
		}
	case errors.Is(err, admin.ErrDeadLettersUnsupported):
		return problem{
			Status: http.StatusNotFound, Code: codeNoDeadLetters,
			Detail: "this API has no access to dead letters; grant it with DeadLetters in the stack, or use the " +
				"command perdure dead-letters",
		}
	case errors.Is(err, client.ErrActivityNotFound):
		return problem{
			Status: http.StatusNotFound, Code: codeActivityNotFound, Field: fieldActivityID,
			Detail: "activity not found in the current execution of the instance",
		}
	case errors.Is(err, client.ErrNotFound):
		return problem{
			Status: http.StatusNotFound, Code: codeInstanceNotFound, Detail: "instance not found",
			Field: fieldInstanceID,
		}
	default:
		return serverProblem(err)
	}
}

// takenProblem is a start whose id is in use.
func takenProblem(err error) problem {
	if errors.Is(err, client.ErrPurged) {
		return problem{
			Status: http.StatusConflict, Code: codeInstanceIDInUse, Field: headerKey,
			Detail: "the instance of an earlier start with this key was purged; nothing was changed; use another key " +
				"for a new start",
		}
	}
	p := problem{
		Status: http.StatusConflict, Code: codeInstanceIDInUse, Detail: "instance id is in use", Field: fieldInstanceID,
	}
	if taken, ok := errors.AsType[*client.AlreadyExistsError](err); ok && taken.Holder() != "" {
		p.Detail += ": " + taken.Holder()
		p.Existing = &existing{
			Orchestration: taken.Orchestration, Status: taken.Status, CreatedAt: taken.CreatedAt.UTC(),
		}
	}
	return p
}

// serverProblem is an error that is not the caller's.
func serverProblem(err error) problem {
	var failed *provider.Error
	switch {
	case errors.As(err, &failed) && failed.Retryable, errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled):
		return problem{
			Status: http.StatusServiceUnavailable, Code: codeUnavailable, Retryable: true,
			Detail: "no response from the task hub in time; try again",
		}
	case errors.Is(err, provider.ErrCorrupt):
		return problem{
			Status: http.StatusInternalServerError, Code: codeCorruptHistory,
			Detail: "history of this instance cannot be read; DELETE with force=true works without it",
		}
	default:
		return problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: detailInternal}
	}
}

// answers sends problems, and logs those that are the service's own.
type answers struct{ log *slog.Logger }

// fail sends an error.
func (a answers) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		a.log.ErrorContext(r.Context(), "request failed", "event", logevent.RequestFailed, "method", r.Method,
			"route", r.Pattern, "code", p.Code, "error", err)
	}
	a.send(w, r, p)
}

// send sends a problem.
func (a answers) send(w http.ResponseWriter, r *http.Request, p problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	if p.Retryable {
		w.Header().Set("Retry-After", "1")
	}
	body, err := json.Marshal(p)
	if err == nil {
		w.Header().Set(headerType, "application/problem+json")
		w.WriteHeader(p.Status)
		_, err = w.Write(append(body, '\n'))
	}
	if err != nil {
		a.log.WarnContext(r.Context(), "response write failed", "event", logevent.ResponseWriteFailed, "code", p.Code,
			"error", err)
	}
}
