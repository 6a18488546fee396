package apiclient

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/provider"
)

// sentinels holds the errors of problems without further data, by code.
var sentinels = map[string]error{
	apiwire.CodeUnknownOrchestration: provider.ErrUnknownOrchestration,
	apiwire.CodeInstanceNotFound:     provider.ErrNotFound,
	apiwire.CodeExecutionNotFound:    provider.ErrNotFound,
	apiwire.CodeJobNotFound:          provider.ErrNotFound,
	apiwire.CodeDeadLetterNotFound:   provider.ErrNotFound,
	apiwire.CodeInstanceOver:         provider.ErrEnded,
	apiwire.CodeInstanceNotOver:      provider.ErrNotEnded,
	apiwire.CodeCorruptHistory:       provider.ErrCorrupt,
	apiwire.CodeQueriesUnsupported:   provider.ErrQueriesUnsupported,
	apiwire.CodeNotesUnsupported:     provider.UnsupportedError{Capability: provider.CapabilityAnnotations},
	apiwire.CodeNoDeadLetters:        provider.UnsupportedError{Capability: provider.CapabilityDeadLetters},
	apiwire.CodeInvalidToken:         provider.ErrInvalidToken,
	apiwire.CodeLockLost:             provider.ErrLockLost,
	apiwire.CodeLockLimit:            provider.ErrLockLimit,
}

func (c *Client) errorOf(o *api.Operation, call *Call, p *apiwire.Problem) error {
	if call.Errors != nil {
		if err := call.Errors(p); err != nil {
			return err
		}
	}
	switch p.Code {
	case apiwire.CodeInvalidRequest:
		return fieldError(p)
	case apiwire.CodePayloadTooLarge:
		large := &perdure.PayloadTooLargeError{Name: p.Field}
		if p.Size != nil {
			large.Bytes, large.Limit = p.Size.Bytes, p.Size.Limit
		}
		return large
	case apiwire.CodeInstanceIDInUse:
		return alreadyExists(call.InstanceID, p)
	}
	return ErrorOf(call.InstanceID, o.ID, p.Code, p.Detail, p.Retryable)
}

// ErrorOf returns the error of a code and its detail.
func ErrorOf(instanceID, operation, code, detail string, retryable bool) error {
	sentinel, known := sentinels[code]
	switch {
	case !known:
		return NewError(operation, instanceID, retryable, errors.New(code+": "+detail))
	case instanceID == "":
		return fmt.Errorf("%s: %w", detail, sentinel)
	default:
		return fmt.Errorf("instance %q: %w", instanceID, sentinel)
	}
}

// fieldError returns the error of invalid input. The detail of its problem begins with the field.
func fieldError(p *apiwire.Problem) error {
	return &provider.FieldError{Field: p.Field, Problem: strings.TrimPrefix(p.Detail, p.Field+" ")}
}

// alreadyExists returns the error of a start whose ID is in use. Only a purged start has the key as its field.
func alreadyExists(instanceID string, p *apiwire.Problem) error {
	e := &provider.AlreadyExistsError{InstanceID: instanceID, Reason: provider.ErrAlreadyExists}
	if p.Field == apiwire.HeaderIdempotencyKey {
		e.Reason = provider.ErrPurged
	}
	if x := p.Existing; x != nil {
		e.InstanceID = cmp.Or(x.InstanceID, instanceID)
		e.Orchestration, e.Status, e.CreatedAt = x.Orchestration, x.Status, x.CreatedAt
	}
	return e
}
