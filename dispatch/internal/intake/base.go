// Package intake implements the parts that all record handlers share. These are dead letters for unreadable records,
// delays of retries, crash markers, isolation of code that crashes its process, and metrics.
package intake

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider"
)

// Base holds the dependencies of a record handler.
type Base struct {
	Provider provider.Provider
	// Clock returns the current time.
	Clock  func() time.Time
	Logger *slog.Logger
}

// NewBase returns a Base. A nil clock is time.Now, and a nil logger is slog.Default().
func NewBase(p provider.Provider, clock func() time.Time, log *slog.Logger) *Base {
	b := &Base{Provider: p, Clock: clock, Logger: log}
	if b.Clock == nil {
		b.Clock = wallClock
	}
	if b.Logger == nil {
		b.Logger = slog.Default()
	}
	return b
}

// wallClock returns time.Now without its monotonic reading, which stops while a Lambda environment is frozen (R6).
func wallClock() time.Time { return time.Now().Round(0) } //nolint:forbidigo // the default clock

// Task is one delivery of a work item in a worker.
type Task interface {
	WorkItem() *provider.LockedWorkItem
	Log() *slog.Logger
}

// DefaultBuildID is the build ID of a process without one.
const DefaultBuildID = "dev"

// DefaultMaxCrashes is the number of times that the code of a record may crash its process, while it runs alone, before
// the record is poison. It has crashed three times before: twice without a crash marker, and once together with others.
const DefaultMaxCrashes = 10

// DefaultGrace is the default grace period of activities.
const DefaultGrace = 10 * time.Second
