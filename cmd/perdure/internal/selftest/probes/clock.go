package probes

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/awsrequest"
)

// clock is the time of the checks.
type clock struct {
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// until repeats a step, with pauses, until missing is nil. After the limit, it returns missing. An error of the step
// ends it.
func (c clock) until(
	ctx context.Context, limit, pause time.Duration, step func() (missing, err error),
) error {
	for began := c.Now(); ; {
		missing, err := step()
		switch {
		case err != nil || missing == nil:
			return err
		case c.Now().Sub(began) > limit:
			return missing
		}
		if err := c.Sleep(ctx, pause); err != nil {
			return undecided(err)
		}
	}
}

// untilPermitted repeats a call until the permissions of its role are effective. A new role is unknown for seconds.
func (c clock) untilPermitted(ctx context.Context, call func() error) error {
	const limit, pause = time.Minute, 5 * time.Second
	return c.until(ctx, limit, pause, func() (missing, err error) { return undecided(call()), nil })
}

// untilRead is like until, for steps that only read. A transient error of a step is tried again. Other errors, and a
// transient one after the limit, do not decide a check.
func (c clock) untilRead(
	ctx context.Context, limit, pause time.Duration, read func() (missing, err error),
) error {
	return c.until(ctx, limit, pause, func() (missing, err error) {
		missing, err = read()
		if awsrequest.IsTransient(err) {
			return undecided(err), nil
		}
		return missing, undecided(err)
	})
}
