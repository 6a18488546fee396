package perdure

import (
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

// CreateTimer returns a future that settles with the due time once d has elapsed since ctx.Now. If d is 0 or less, the
// future settles immediately and nothing is recorded. d can be years. A timer never fires early, and fires about one
// second late. WithTimerName names the timer.
func CreateTimer(ctx *OrchestrationContext, d time.Duration, opts ...TimerOption) *Future[time.Time] {
	if d <= 0 && ctx.replay.Cancellation() == nil {
		return &Future[time.Time]{task: ctx.replay.Settled("", nil), value: ctx.Now()}
	}
	t := ctx.replay.CreateTimer(d, timerName(opts))
	return &Future[time.Time]{task: t, value: t.FireAt()}
}

// Sleep waits until d has elapsed. It returns immediately if d is 0 or less. Sleep returns an error only if the wait is
// cancelled.
func Sleep(ctx *OrchestrationContext, d time.Duration, opts ...TimerOption) error {
	_, err := CreateTimer(ctx, d, opts...).Await(ctx)
	return err
}

// TimerOption is an option of CreateTimer, Sleep and WithTimeout.
type TimerOption interface{ applyToTimer(name *string) }

func timerName(opts []TimerOption) (name string) {
	for _, opt := range opts {
		opt.applyToTimer(&name)
	}
	return name
}

type nameOption string

func (n nameOption) applyToTimer(name *string) { *name = string(n) }

// WithTimerName names a timer, for example "payment window". The name is for people: the history, lists of pending
// tasks, the web UI and traces show it. It has no effect on the behavior. You can change or remove the name while
// instances run. The names of existing timers do not change. Names over 256 bytes are truncated and marked as such, and
// invalid UTF-8 is replaced. An empty name is the same as no name.
func WithTimerName(name string) TimerOption {
	return nameOption(history.TruncateMessage(strings.ToValidUTF8(name, "\ufffd"), history.MaxTimerNameBytes))
}
