// Package far is called by orchestrations of other packages, and knows nothing of perdure.
package far

import (
	"math/rand/v2"
	"os"
	"time"
)

// Stamp is the time as text.
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

// Now is the clock.
var Now = time.Now

// Rate is changed while the process runs.
var Rate = 1

// SetRate changes it.
func SetRate(n int) { Rate = n }

// Shelf holds things.
type Shelf struct{ things map[string]int }

// Names has them in no order.
func (s *Shelf) Names() []string {
	var names []string
	for name := range s.things {
		names = append(names, name)
	}
	return names
}

// Spawn goes on by itself.
func Spawn(fn func()) { go fn() }

// Ordered does nothing wrong.
func Ordered[T ~int](a, b T) T { return min(a, b) }

// Stamped is generic.
func Stamped[T any](v T) (T, string) { return v, Stamp() }
