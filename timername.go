package perdure

import (
	"strings"

	"github.com/perdure/perdure/history"
)

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
// instances run; existing timers keep their names. Names over 256 bytes are truncated and marked as such, and invalid
// UTF-8 is replaced. An empty name is the same as no name.
func WithTimerName(name string) TimerOption {
	return nameOption(history.TruncateMessage(strings.ToValidUTF8(name, "\ufffd"), history.MaxTimerNameBytes))
}
