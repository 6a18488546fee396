// Package far has functions that orchestrations of other packages call. It does not import perdure.
package far

import (
	"math/rand/v2"
	"os"
	"time"
)

// Stamp returns the time as text.
func Stamp() string { return format(time.Now()) }

func format(t time.Time) string { return t.Format(time.RFC3339) }

// Dice throws n dice.
func Dice(n int) (sum int) {
	for range n {
		sum += rand.IntN(6) + 1
	}
	return sum
}

// Region is set when the process starts.
var Region = os.Getenv("AWS_REGION")

// Now returns the time.
var Now = time.Now

// Rate changes while the process runs.
var Rate = 1

// SetRate changes Rate.
func SetRate(n int) { Rate = n }

// Shelf is a map with methods.
type Shelf struct{ things map[string]int }

// Names returns the keys in random order.
func (s *Shelf) Names() []string {
	var names []string
	for name := range s.things {
		names = append(names, name)
	}
	return names
}

// Spawn starts a goroutine.
func Spawn(fn func()) { go fn() }

// Ordered is deterministic.
func Ordered[T ~int](a, b T) T { return min(a, b) }

// Stamped is a generic function that calls Stamp.
func Stamped[T any](v T) (T, string) { return v, Stamp() }
