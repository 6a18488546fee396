// Package workload is the work that every engine of the benchmark is given, and what is seen of it from inside.
//
// An activity notes in this process that it ran, so that a run measures work that was done.
package workload

import (
	"context"
	"strings"
	"time"
)

// Kind names one orchestration. Each engine has all of them, but for those that it cannot express.
type Kind string

const (
	// Chain is N activities, one after another; its result is the sum of theirs.
	Chain Kind = "chain"
	// Fan is N activities at once, joined; its result is the sum of theirs.
	Fan Kind = "fan"
	// Race is an activity that waits for its context to end, against a timer of RaceTimer, which wins.
	Race Kind = "race"
	// Hold is such an activity alone. It is cancelled from outside.
	Hold Kind = "hold"
)

// RaceTimer is the timer of Race.
const RaceTimer = time.Second

// Input is that of every orchestration.
type Input struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// Payload is the input of every activity: some 64 bytes of JSON.
type Payload struct {
	ID  string `json:"id"`
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

var pad = strings.Repeat("x", 28)

// NewPayload makes the input of the nth activity of an instance.
func NewPayload(id string, n int) Payload { return Payload{ID: id, N: n, Pad: pad} }

// Sum is the result of Chain and Fan with n activities.
func Sum(n int) int { return n * (n - 1) / 2 }

// Engine is what is measured. Its methods are called from many goroutines.
type Engine interface {
	// Run starts an orchestration and waits for its result, as a user's client does.
	Run(ctx context.Context, kind Kind, in Input) (int, error)
	// Cancel asks for the end of a running orchestration.
	Cancel(ctx context.Context, id string) error
	// Close ends the engine. Servers are ended by who started them.
	Close() error
}

// Store is what an engine has asked of its store so far.
type Store struct {
	Calls int64 `json:"calls"`
	// Time is that of all calls together, less the waiting for work.
	Time time.Duration `json:"time"`
}

// Counted is an Engine whose calls to its store can be seen.
type Counted interface {
	Store() Store
}
