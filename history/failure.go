package history

import (
	"fmt"
	"slices"
	"strings"
)

// The types of failures that the engine creates. For errors of your code, the type is the name of the Go type, or the
// result of the error's ErrorType method.
const (
	// TypeError is the type of errors from packages errors and fmt, and of unnamed error types.
	TypeError = "error"
	// TypePanic means that an orchestration or activity panicked. The message ends with the stack.
	TypePanic = "panic"
	// TypeGoexit means that the code called runtime.Goexit instead of returning.
	TypeGoexit = "goexit"
	// TypeTimeout means that an attempt, an activity or a scope timed out.
	TypeTimeout = "timeout"
	// TypeInterrupted means that an attempt of an activity with AtMostOnce may have started and its result is unknown.
	TypeInterrupted = "interrupted"
	// TypeCancelled means that the work was cancelled. Failure.Reason is the cancel reason.
	TypeCancelled = "cancelled"
	// TypeTerminated means that the instance was terminated.
	TypeTerminated = "terminated"
	// TypeNondeterminism means that the code deviates from its history. Expected and Got describe the difference.
	TypeNondeterminism = "nondeterminism"
	// TypeUnregistered means that the build does not register the orchestration or code that the orchestration called.
	TypeUnregistered = "unregistered"
	// TypeBlockingCall means that the code waits for something other than a future and does not return.
	// TypeForeignGoroutine means that the code used its context on another goroutine.
	TypeBlockingCall     = "blocked_outside"
	TypeForeignGoroutine = "foreign_goroutine"
	// TypeNotFound means that the instance does not exist. TypeEnded means that it has ended.
	TypeNotFound = "not_found"
	TypeEnded    = "over"
	// TypeAlreadyExists means that the instance ID of a start is in use.
	TypeAlreadyExists = "already_exists"
	// TypeOutcomeLost means that the outcome of a sub-orchestration is unknown, for example because it was purged
	// before the outcome reached its parent.
	TypeOutcomeLost = "outcome_lost"
	// TypePoison means that the code repeatedly ended its process, or that a message was delivered too often.
	TypePoison = "poison"
	// TypeCorrupt means that the history cannot be read.
	TypeCorrupt = "corrupt"
	// TypePayloadTooLarge means that a payload exceeds the limit.
	TypePayloadTooLarge = "payload_too_large"
	// TypePayloadUnreadable means that a payload cannot be decoded, because its codec or its data is missing, or the
	// data was changed.
	TypePayloadUnreadable = "payload_unreadable"
	// TypeEncode means that a value cannot be encoded as JSON. TypeDecode means that JSON cannot be decoded into its Go
	// type.
	TypeEncode = "encode"
	TypeDecode = "decode"
)

// Clone returns a deep copy of f, or nil if f is nil.
func (f *Failure) Clone() *Failure {
	if f == nil {
		return nil
	}
	c := *f
	c.Cause = f.Cause.Clone()
	c.Joined = slices.Clone(f.Joined)
	c.Details = slices.Clone(f.Details)
	return &c
}

// MaxFailureDetailsBytes is the maximum size of the details of one failure, as JSON: 4 KiB.
const MaxFailureDetailsBytes = 4 << 10

// OmitDetails removes the details of f and records the reason.
func (f *Failure) OmitDetails(why string) {
	f.Details = nil
	f.DetailsOmitted = why
}

// OmitLargeDetails returns f in a form that the history can store. If details of f or of a cause are larger than
// MaxFailureDetailsBytes, or refer to data stored elsewhere, it returns a copy without those details. It returns nil if
// f is nil.
func (f *Failure) OmitLargeDetails() *Failure {
	if why := f.unfit(); why != "" {
		c := *f
		c.OmitDetails(why)
		f = &c
	}
	if f == nil {
		return nil
	}
	if cause := f.Cause.OmitLargeDetails(); cause != f.Cause {
		c := *f
		c.Cause = cause
		f = &c
	}
	return f
}

// unfit returns the reason why the history cannot store the details, or an empty string.
func (f *Failure) unfit() string {
	if f == nil || len(f.Details) == 0 {
		return ""
	}
	doc, plain := f.Details.Document()
	switch {
	case f.Details.IsEncoded() && f.Details.StorageKey() == "":
		return ""
	case !plain:
		return "stored outside the failure"
	case len(doc) > MaxFailureDetailsBytes:
		return DetailsTooLargeMessage(len(doc))
	default:
		return ""
	}
}

// DetailsTooLargeMessage returns the value of DetailsOmitted for details that are too large.
func DetailsTooLargeMessage(bytes int) string {
	return fmt.Sprintf("%d bytes of JSON exceed the limit of %d", bytes, MaxFailureDetailsBytes)
}

// Truncate returns a shortened copy of f. The copy has the type and the reason of f, its message truncated to bytes,
// and at most the given number of shortened causes. Details of more than bytes are dropped. Truncate returns nil if f
// is nil.
func (f *Failure) Truncate(bytes, causes int) *Failure {
	if f == nil {
		return nil
	}
	c := &Failure{Type: f.Type, Message: f.Message, Reason: f.Reason, NonRetryable: f.NonRetryable}
	switch n := len(f.Details); {
	case n == 0:
		c.DetailsOmitted = f.DetailsOmitted
	case n <= bytes:
		c.Details = f.Details
	default:
		c.OmitDetails(fmt.Sprintf("%d bytes exceed the limit", n))
	}
	if len(c.Message) > bytes {
		c.Message = strings.ToValidUTF8(c.Message[:bytes], "") + "…"
	}
	if causes > 0 {
		c.Cause = f.Cause.Truncate(bytes, causes-1)
	}
	return c
}
