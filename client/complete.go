package client

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// CompleteActivity completes an activity with a result, using the completion token of its current attempt
// (perdure.ActivityInfo.CompletionToken). It may be called before the activity's function returns perdure.ErrPending.
// The result is encoded as JSON; a json.RawMessage is used as is. It must have the form of the activity's result type.
// Otherwise the call fails in the orchestration that decodes it.
//
// CompleteActivity returns nil when the result is on its way. If two results of an attempt are sent, the first one to
// arrive counts. A timeout that expired earlier takes precedence. The result of a cancelled activity is recorded, but
// the orchestration sees it only with perdure.WaitForCancellation.
//
// CompleteActivity returns a *TokenError if the token is not valid for an open attempt. You can repeat a call that
// failed with a retryable error. If the failed call has succeeded after all, the repetition returns a *TokenError with
// TokenActivityEnded.
func (c *Client) CompleteActivity(ctx context.Context, token string, result any) error {
	return wrap("complete", publicTokenError(c.attempts.Complete(ctx, token, result)))
}

// FailActivity fails an attempt of an activity with err, using the attempt's completion token, as if the activity's
// function had returned err. The activity's retry policy decides whether another attempt follows, which has a new
// token.
//
// FailActivity returns the errors of CompleteActivity. It returns a *provider.FieldError if err is nil or
// perdure.ErrPending, and if the error's details (perdure.WithErrorDetails) cannot be encoded.
func (c *Client) FailActivity(ctx context.Context, token string, err error) error {
	return wrap("fail", publicTokenError(c.attempts.Fail(ctx, token, err)))
}

// HeartbeatActivity reports that an attempt is alive, using its completion token, and restarts the attempt's heartbeat
// timeout. Use it where the activity's function has returned and cannot call perdure.Heartbeat. Details are stored for
// the next attempt (perdure.HeartbeatDetails); nil keeps the stored details.
//
// HeartbeatActivity returns whether the activity is cancelled. The caller should then stop and complete or fail the
// attempt. An error means that the heartbeat has no effect. HeartbeatActivity returns the errors of CompleteActivity.
//
// A heartbeat costs three reads and one write. One per second is enough: heartbeats without details are written at most
// that often. The first call of a Client for an execution also reads its history from the activity on.
func (c *Client) HeartbeatActivity(ctx context.Context, token string, details any) (provider.CancelInfo, error) {
	cancel, err := c.attempts.Heartbeat(ctx, token, details)
	return cancel, wrap("heartbeat", publicTokenError(err))
}
