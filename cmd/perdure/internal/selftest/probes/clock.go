package probes

import (
	"context"
	"time"
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
