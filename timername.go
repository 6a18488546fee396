package perdure

import (
	"strings"

	"github.com/perdure/perdure/history"
)

// TimerOption is an option of CreateTimer, Sleep and WithTimeout.
type TimerOption interface{ applyToTimer(t *timer) }

// timer is what options say of a timer.
type timer struct{ name string }

func timerOf(opts []TimerOption) (t timer) {
	for _, opt := range opts {
		opt.applyToTimer(&t)
	}
	return t
}

type nameOption string

func (n nameOption) applyToTimer(t *timer) { t.name = string(n) }

// WithName says what a timer is for, as "payment window". The name is for people: it stands in history, in what an instance is shown to
// wait for, on the page and in traces, and nothing depends on it. A running instance may be replayed by code that names its timers otherwise, or not at all: those
// that it has keep the names that they were made with. A name of more than 256 bytes is cut, and ends with a mark of that; what is not UTF-8 in it is
// replaced; an empty one is none.
func WithName(name string) TimerOption {
	return nameOption(history.CutMessage(strings.ToValidUTF8(name, "\ufffd"), history.MaxTimerNameBytes))
}
