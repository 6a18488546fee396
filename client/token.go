package client

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// TokenProblem is why a completion token (perdure.ActivityInfo.Token) is not accepted. The HTTP API uses the same
// strings.
type TokenProblem string

// Problems of a completion token.
const (
	// TokenInvalid means that this hub did not issue the token, or that its key was deleted.
	TokenInvalid TokenProblem = "invalid_token"
	// TokenOfOtherHub means that the token names another hub (TokenError.Hub).
	TokenOfOtherHub TokenProblem = "other_hub"
	// TokenSuperseded means that the token's attempt has failed or timed out and a later attempt with another token is
	// current (TokenError.CurrentAttempt).
	TokenSuperseded TokenProblem = "superseded"
	// TokenOver means that the activity has ended or that its last attempt timed out. A second completion also returns
	// it.
	TokenOver TokenProblem = "activity_over"
	// TokenGone means that the activity's execution has ended, continued as new, or was purged.
	TokenGone TokenProblem = "execution_over"
)

// TokenError reports a completion token that is not accepted. It never contains the token. With TokenInvalid and
// TokenOfOtherHub it is a provider.ErrToken, and only Hub may be set.
type TokenError struct {
	Problem TokenProblem
	// Hub is the hub that the token names, without verification. It is set if Problem is TokenOfOtherHub.
	Hub string
	// InstanceID, ExecutionID, ActivityID and Attempt identify the attempt to which the token belongs.
	InstanceID, ExecutionID string
	ActivityID              int64
	Attempt                 int
	// CurrentAttempt is the activity's current attempt. It is set if Problem is TokenSuperseded.
	CurrentAttempt int
}

// Error implements error.
func (e *TokenError) Error() string {
	of := fmt.Sprintf("instance %q: execution %s: attempt %d of activity #%d", e.InstanceID, e.ExecutionID, e.Attempt, e.ActivityID)
	switch e.Problem {
	case TokenOfOtherHub:
		return fmt.Sprintf("token belongs to hub %q; use that hub", e.Hub)
	case TokenSuperseded:
		return fmt.Sprintf("%s: superseded by attempt %d, which has another token", of, e.CurrentAttempt)
	case TokenOver:
		return of + ": activity has ended"
	case TokenGone:
		return of + ": execution has ended or was purged"
	default:
		return "token was not issued by this hub, or its key was deleted"
	}
}

// Unwrap returns provider.ErrToken for a token that does not belong to this hub, and otherwise nil.
func (e *TokenError) Unwrap() error {
	if e.Problem == TokenInvalid || e.Problem == TokenOfOtherHub {
		return provider.ErrToken
	}
	return nil
}

// tokenError is what is wrong with a token that cannot be read.
func tokenError(err error) error {
	if foreign, ok := errors.AsType[*provider.ForeignTokenError](err); ok {
		return &TokenError{Problem: TokenOfOtherHub, Hub: provider.Echo(foreign.Hub)}
	}
	if errors.Is(err, provider.ErrToken) {
		return &TokenError{Problem: TokenInvalid}
	}
	return err
}
