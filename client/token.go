package client

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/client/internal/completion"
	"github.com/perdure/perdure/provider"
)

// TokenErrorReason is the reason why a completion token (perdure.ActivityInfo.CompletionToken) is rejected. The HTTP
// API uses the same strings.
type TokenErrorReason = completion.Reason

// Reasons of a TokenError.
const (
	// TokenInvalid means that this hub did not issue the token, or that its key was deleted.
	TokenInvalid = completion.Invalid
	// TokenWrongHub means that the token names another hub (TokenError.Hub).
	TokenWrongHub = completion.WrongHub
	// TokenSuperseded means that the token's attempt has failed or timed out and a later attempt with another token is
	// current (TokenError.CurrentAttempt).
	TokenSuperseded = completion.Superseded
	// TokenActivityEnded means that the activity has ended or that its last attempt timed out. A second completion of
	// an attempt also results in TokenActivityEnded.
	TokenActivityEnded = completion.ActivityEnded
	// TokenExecutionEnded means that the activity's execution has ended, continued as new, or was purged.
	TokenExecutionEnded = completion.ExecutionEnded
)

// TokenError reports a completion token that is rejected. It never contains the token. With TokenInvalid and
// TokenWrongHub, it wraps provider.ErrInvalidToken, and no field other than Hub is set.
type TokenError struct {
	Reason TokenErrorReason
	// Hub is the hub that the token names, without verification. It is set if Reason is TokenWrongHub.
	Hub string
	// InstanceID, ExecutionID, ActivityID and Attempt identify the attempt to which the token belongs.
	InstanceID, ExecutionID string
	ActivityID              int64
	Attempt                 int
	// CurrentAttempt is the activity's current attempt. It is set if Reason is TokenSuperseded.
	CurrentAttempt int
}

// Error implements error.
func (e *TokenError) Error() string {
	of := fmt.Sprintf("instance %q: execution %s: attempt %d of activity #%d",
		e.InstanceID, e.ExecutionID, e.Attempt, e.ActivityID)
	switch e.Reason {
	case TokenWrongHub:
		return fmt.Sprintf("token belongs to hub %q; use that hub", e.Hub)
	case TokenSuperseded:
		return fmt.Sprintf("%s: superseded by attempt %d, which has another token", of, e.CurrentAttempt)
	case TokenActivityEnded:
		return of + ": activity has ended"
	case TokenExecutionEnded:
		return of + ": execution has ended or was purged"
	default:
		return "token was not issued by this hub, or its key was deleted"
	}
}

// Unwrap returns provider.ErrInvalidToken for a token that does not belong to this hub, and otherwise nil.
func (e *TokenError) Unwrap() error {
	if e.Reason == TokenInvalid || e.Reason == TokenWrongHub {
		return provider.ErrInvalidToken
	}
	return nil
}

// publicTokenError replaces a completion.TokenError by a TokenError. It returns other errors unchanged.
func publicTokenError(err error) error {
	if e, ok := errors.AsType[*completion.TokenError](err); ok {
		return (*TokenError)(e)
	}
	return err
}
