package client

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// TokenProblem is why a token (perdure.ActivityInfo.Token) does nothing. The strings are those of the HTTP API.
type TokenProblem string

// What a token can be.
const (
	// TokenInvalid is no token that this hub has made for an activity, or its key was deleted.
	TokenInvalid TokenProblem = "invalid_token"
	// TokenOfOtherHub is one that names another hub (TokenError.Hub).
	TokenOfOtherHub TokenProblem = "other_hub"
	// TokenSuperseded is of an earlier attempt: it has failed or was out of time, and the activity is at
	// TokenError.CurrentAttempt by now, which has another token.
	TokenSuperseded TokenProblem = "superseded"
	// TokenOver is of an activity that has ended, or of a last attempt that was out of time. It is what a second
	// completion comes to as well.
	TokenOver TokenProblem = "activity_over"
	// TokenGone is of an execution that has ended, continued as new, or was purged.
	TokenGone TokenProblem = "execution_over"
)

// TokenError reports a token that does nothing, and why. It never contains the token. Where the problem is TokenInvalid or
// TokenOfOtherHub it is a provider.ErrToken, and has nothing else than Hub.
type TokenError struct {
	Problem TokenProblem
	// Hub is the hub that the token names, unproven, where Problem is TokenOfOtherHub.
	Hub string
	// InstanceID, ExecutionID, ActivityID and Attempt are what the token is of.
	InstanceID, ExecutionID string
	ActivityID              int64
	Attempt                 int
	// CurrentAttempt is the activity's attempt by now, where Problem is TokenSuperseded.
	CurrentAttempt int
}

// Error says which token it is, and what to do.
func (e *TokenError) Error() string {
	of := fmt.Sprintf("instance %q: execution %s: attempt %d of activity #%d", e.InstanceID, e.ExecutionID, e.Attempt, e.ActivityID)
	switch e.Problem {
	case TokenOfOtherHub:
		return fmt.Sprintf("the token is of the hub %q: ask that one", e.Hub)
	case TokenSuperseded:
		return fmt.Sprintf("%s is superseded: the activity has gone on to attempt %d, and while that is open its own token counts", of, e.CurrentAttempt)
	case TokenOver:
		return of + " is over: the activity has ended"
	case TokenGone:
		return of + " is over: its execution has ended or is gone"
	default:
		return "the token is none that this hub has given to an activity, or its key was deleted"
	}
}

// Unwrap returns provider.ErrToken for what is no token of this hub.
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
