package client

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// CompleteActivity completes an activity with a result, using the completion token of its current attempt
// (perdure.ActivityInfo.CompletionToken). You can call it before the activity's function returns perdure.ErrPending.
// The result is encoded as JSON; a json.RawMessage is used as is. The result must fit the activity's result type.
// Otherwise the future fails when the orchestration decodes the result.
//
// CompleteActivity returns nil when the result has been sent. If two results of an attempt are sent, the first result
// that arrives is recorded. A timeout that expired earlier takes precedence. The result of a cancelled activity is
// recorded, but the orchestration receives it only with perdure.WaitForCancellation.
//
// CompleteActivity returns a *TokenError if the token is not valid for an open attempt. You can repeat a call that
// failed with a retryable error. If the service accepted the first call despite the error, the repeated call returns
// nil until the result is recorded, and then a *TokenError with TokenActivityEnded.
func (c *Client) CompleteActivity(ctx context.Context, token string, result any) error {
	return wrap("complete", publicTokenError(c.attempts.Complete(ctx, token, result)))
}

// FailActivity fails an attempt of an activity with err, using the attempt's completion token, as if the activity's
// function had returned err. The activity's retry policy decides whether another attempt follows. Each attempt has a
// new token.
//
// FailActivity returns the errors of CompleteActivity. It returns a *provider.FieldError if err is nil or
// perdure.ErrPending, or if the error's details (perdure.WithErrorDetails) cannot be encoded.
func (c *Client) FailActivity(ctx context.Context, token string, err error) error {
	return wrap("fail", publicTokenError(c.attempts.Fail(ctx, token, err)))
}

// HeartbeatActivity reports that an attempt is alive, using its completion token, and restarts the attempt's heartbeat
// timeout. Use it after the activity's function has returned, because perdure.Heartbeat then has no effect. Details are
// stored for the next attempt (perdure.HeartbeatDetails); nil does not change the stored details.
//
// The result reports whether the activity is cancelled. If so, stop the work and complete or fail the attempt. An error
// means that the heartbeat has no effect. HeartbeatActivity returns the errors of CompleteActivity.
//
// A heartbeat costs three reads and one write. Heartbeats without details are written at most once a second. The first
// call of a Client for an execution also reads its history from the event of the activity.
func (c *Client) HeartbeatActivity(ctx context.Context, token string, details any) (provider.CancelInfo, error) {
	cancel, err := c.attempts.Heartbeat(ctx, token, details)
	return cancel, wrap("heartbeat", publicTokenError(err))
}
