// Package workload defines the work of the benchmark, runs it on an engine, and measures it.
//
// Each activity records that it ran, so that a run can check that the work was done.
package workload

import (
	"context"
	"strings"
	"time"
)

// Kind names an orchestration. Each engine implements all kinds that it supports.
type Kind string

const (
	// Chain runs N activities one after another and returns the sum of their results.
	Chain Kind = "chain"
	// Fan runs N activities in parallel and returns the sum of their results.
	Fan Kind = "fan"
	// Race runs an activity that waits for its context to end, and a timer of RaceTimer, which wins.
	Race Kind = "race"
	// Hold runs such an activity without a timer. A client cancels the instance.
	Hold Kind = "hold"
)

// RaceTimer is the duration of the timer of Race.
const RaceTimer = time.Second

// Input is the input of every orchestration.
type Input struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// Payload is the input of every activity, about 64 bytes of JSON.
type Payload struct {
	ID  string `json:"id"`
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

var pad = strings.Repeat("x", 28)

// NewPayload returns the input of the nth activity of an instance.
func NewPayload(id string, n int) Payload { return Payload{ID: id, N: n, Pad: pad} }

// Sum returns the result of Chain and Fan with n activities.
func Sum(n int) int { return n * (n - 1) / 2 }

// Engine is an engine of the benchmark. Its methods are safe for concurrent use.
type Engine interface {
	// Run starts an orchestration and waits for its result, like a client of a user.
	Run(ctx context.Context, kind Kind, in Input) (int, error)
	// Cancel cancels a running orchestration.
	Cancel(ctx context.Context, id string) error
	// Close stops the engine, but not its servers.
	Close() error
}

// Store counts the calls of an engine to its store.
type Store struct {
	Calls int64 `json:"calls"`
	// Time is the total time of the calls, without waits for work.
	Time time.Duration `json:"time"`
}

// Counted is an Engine whose calls to its store are counted.
type Counted interface {
	Store() Store
}
