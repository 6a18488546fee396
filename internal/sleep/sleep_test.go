package sleep_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/sleep"
)

func TestFor_endsAfterDurationOrWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := sleep.For(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("a sleep of a minute took %v: %v", time.Since(begun), err)
		}

		why := errors.New("enough")
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(why) })
		if err := sleep.For(ctx, time.Minute); !errors.Is(err, why) || time.Since(begun) != time.Minute+time.Second {
			t.Errorf("a sleep that was cancelled after a second returned %v after %v", err, time.Since(begun))
		}
	})
}
