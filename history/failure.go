package history

import (
	"fmt"
	"slices"
	"strings"
)

// The types of failures that the engine itself makes. The Type of an error of a user's program is the name of its Go
// type, or the result of its ErrorType method.
const (
	// TypeError is an error that has no type of its own, as errors.New makes it.
	TypeError = "error"
	// TypePanic is a panic of an orchestration or activity; the message ends with the stack.
	TypePanic = "panic"
	// TypeGoexit is code that ended its goroutine instead of returning.
	TypeGoexit = "goexit"
	// TypeTimeout is an attempt or scope that ran out of time.
	TypeTimeout = "timeout"
	// TypeInterrupted is an attempt of an activity with AtMostOnce that may have begun, and was not ended.
	TypeInterrupted = "interrupted"
	// TypeCancelled is something that was cancelled; Reason has the reason.
	TypeCancelled = "cancelled"
	// TypeTerminated is an instance that was terminated.
	TypeTerminated = "terminated"
	// TypeNondeterminism is code that deviates from its history; Expected and Got show where.
	TypeNondeterminism = "nondeterminism"
	// TypeUnregistered is an orchestration, or something that it called, which the build does not have.
	TypeUnregistered = "unregistered"
	// TypeBlockedOutside is code that blocks outside the engine and does not return; TypeForeignGoroutine is code that
	// calls from a goroutine of its own.
	TypeBlockedOutside   = "blocked_outside"
	TypeForeignGoroutine = "foreign_goroutine"
	// TypeNotFound is a cancellation of an instance that does not exist, TypeOver of one that has ended.
	TypeNotFound = "not_found"
	TypeOver     = "over"
	// TypeAlreadyExists is a start of an instance id that is in use.
	TypeAlreadyExists = "already_exists"
	// TypeOutcomeLost is a child whose outcome is not known any more: it was purged before that had reached its parent, or nothing is
	// left that tells whether it has run.
	TypeOutcomeLost = "outcome_lost"
	// TypePoison is code that killed its process whenever it ran, or a message that was delivered too often.
	TypePoison = "poison"
	// TypeCorrupt is a history that cannot be read.
	TypeCorrupt = "corrupt"
	// TypePayloadTooLarge is an input or result over the limit.
	TypePayloadTooLarge = "payload_too_large"
	// TypePayloadUnreadable is a payload that cannot be opened: its codec is not there, or what is stored is not, or is not what was stored.
	TypePayloadUnreadable = "payload_unreadable"
	// TypeEncode is an input or result that is not JSON; TypeDecode is one that does not fit its Go type.
	TypeEncode = "encode"
	TypeDecode = "decode"
)

// Clone returns a copy that shares nothing with a failure. It returns nil for nil.
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

// MaxFailureDetails is the limit of the details of one failure, as JSON: 4 KiB. A failure travels with its causes, in messages and events that have others
// beside it.
const MaxFailureDetails = 4 << 10

// OmitDetails takes a failure's details away and says why.
func (f *Failure) OmitDetails(why string) {
	f.Details = nil
	f.DetailsOmitted = why
}

// OmitTooLarge returns a failure as it may come into history. Where somebody else has made it, its details, or those of a cause, may be larger than
// MaxFailureDetails, or refer to a place that is not theirs: a copy without them comes back. It returns nil for nil.
func (f *Failure) OmitTooLarge() *Failure {
	if why := f.unfit(); why != "" {
		c := *f
		c.OmitDetails(why)
		f = &c
	}
	if f == nil {
		return nil
	}
	if cause := f.Cause.OmitTooLarge(); cause != f.Cause {
		c := *f
		c.Cause = cause
		f = &c
	}
	return f
}

// unfit returns why the history cannot store the details, or an empty string if it can.
func (f *Failure) unfit() string {
	if f == nil || len(f.Details) == 0 {
		return ""
	}
	doc, plain := f.Details.Document()
	switch {
	case f.Details.IsSealed() && f.Details.StoredAt() == "":
		return ""
	case !plain:
		return "stored where no program can read them"
	case len(doc) > MaxFailureDetails:
		return TooLargeDetails(len(doc))
	default:
		return ""
	}
}

// TooLargeDetails says that details are left out since they are too large.
func TooLargeDetails(bytes int) string {
	return fmt.Sprintf("%d bytes of JSON exceed the limit of %d", bytes, MaxFailureDetails)
}

// Cut returns the part of a failure that is kept where there is no room for all of it: its type, its reason and the
// first bytes of its message, and the same of as many of its causes. Details are kept whole where they have no more bytes than that, or left out. It
// returns nil for nil.
func (f *Failure) Cut(bytes, causes int) *Failure {
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
		c.OmitDetails(fmt.Sprintf("%d bytes do not fit here", n))
	}
	if len(c.Message) > bytes {
		c.Message = strings.ToValidUTF8(c.Message[:bytes], "") + "…"
	}
	if causes > 0 {
		c.Cause = f.Cause.Cut(bytes, causes-1)
	}
	return c
}
