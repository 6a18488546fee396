// Package intake is what all handlers of records have in common: what a record that cannot be read becomes, when one that failed comes back, the
// marks that show which code takes its process down, and which code runs alone.
package intake

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider"
)

// Base is what every handler of records works with.
type Base struct {
	Provider provider.Provider
	// Clock is where times come from.
	Clock  func() time.Time
	Logger *slog.Logger
}

// NewBase makes a base. A nil clock is time.Now, and a nil logger is slog.Default().
func NewBase(p provider.Provider, clock func() time.Time, log *slog.Logger) Base {
	b := Base{Provider: p, Clock: clock, Logger: log}
	if b.Clock == nil {
		b.Clock = wallClock
	}
	if b.Logger == nil {
		b.Logger = slog.Default()
	}
	return b
}

// wallClock is time.Now without its monotonic reading, which stands still while a Lambda is frozen (R6).
func wallClock() time.Time { return time.Now().Round(0) } //nolint:forbidigo // the default clock

// DefaultBuildID names no build.
const DefaultBuildID = "dev"

// DefaultMaxAttempts is how often the code that a record leads to may take its process down before the record is poison.
const DefaultMaxAttempts = 10

// DefaultGrace is how long a worker waits for an activity whose context it has ended.
const DefaultGrace = 10 * time.Second
