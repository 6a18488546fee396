package deployment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/internal/awsrequest"
)

// Limits of a call. The pauses between its attempts add up to about three minutes.
const (
	maxAttempts   = 12
	firstPause    = 200 * time.Millisecond
	longestPause  = 20 * time.Second
	callTimeout   = 2 * time.Minute // of an attempt; the largest upload has about 20 MB
	responseLimit = 16 << 20
)

// APIError is an error response of AWS.
type APIError = awsrequest.APIError

// hasCode reports whether an error is a response of AWS with one of the codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*APIError](err)
	return ok && slices.Contains(codes, e.Code)
}

// isTransient reports whether the same request may succeed later.
func isTransient(err error) bool {
	_, timedOut := errors.AsType[*aws.RequestCanceledError](err) // the attempt, not the call
	e, refused := errors.AsType[*APIError](err)
	return timedOut || refused && (e.Status == http.StatusTooManyRequests || e.Code == "OperationAborted") ||
		awsrequest.IsTransient(err)
}

// caller makes calls to AWS and repeats calls that failed temporarily.
type caller struct {
	sender *awsrequest.Sender
	region string
	sleep  func(ctx context.Context, d time.Duration) error
}

func newCaller(
	cfg *aws.Config, now func() time.Time, sleep func(ctx context.Context, d time.Duration) error,
) *caller {
	return &caller{sender: awsrequest.New(cfg, now), region: cfg.Region, sleep: sleep}
}

const contentType = "Content-Type"

// call makes a call and returns the body of the response.
func (c *caller) call(ctx context.Context, r *awsrequest.Request) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		body, err := c.send(ctx, r)
		if err == nil {
			return body, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", r.Operation, context.Cause(ctx))
		}
		if !isTransient(err) || attempt == maxAttempts {
			return nil, err
		}
		if err := c.sleep(ctx, pauseAfter(attempt)); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Operation, err)
		}
	}
}

// pauseAfter returns a random pause after an attempt, which doubles with each attempt.
func pauseAfter(attempt int) time.Duration {
	pause := min(firstPause<<(attempt-1), longestPause)
	return pause/2 + rand.N(pause/2)
}

// send makes one attempt.
func (c *caller) send(ctx context.Context, r *awsrequest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.sender.Send(ctx, r, responseLimit)
}
