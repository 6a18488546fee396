package differential_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// Both queues execute random sequences of calls with valid receipt handles, because the emulator handles invalid ones
// differently. The number of messages is limited to the maximum of one receive call. AWS empties a message group first,
// and the emulator uses the order of arrival.
func TestQueue_randomCalls_matchMinistack(t *testing.T) {
	t.Parallel()

	for _, suffix := range []string{"", ".fifo"} {
		t.Run("queue"+suffix, func(t *testing.T) {
			t.Parallel()

			var runs atomic.Int64

			rapid.Check(t, func(rt *rapid.T) {
				simulated, actual := queues(t, fmt.Sprint("sequence", runs.Add(1), "-", suffix), long, 0)
				s := &sequence{
					rt: rt, fifo: suffix != "",
					sim: &counter{queue: simulated, ctx: t.Context()}, real: &counter{
						queue: actual, ctx: t.Context(),
					},
				}

				for range rapid.IntRange(5, 30).Draw(rt, "calls") {
					s.call()
				}
			})
		})
	}
}

// sequence is a random run, with the receipt handles that are still valid.
type sequence struct {
	rt        *rapid.T
	fifo      bool
	sim, real *counter
	live      []int
	sent      int
}

func (s *sequence) call() {
	switch kind := rapid.IntRange(0, 9).Draw(s.rt, "kind"); {
	case kind < 4 && s.sent < 10:
		s.run(s.drawSend())
	case kind < 7:
		before := len(s.sim.received)
		s.run(receive(10, 0, 0))

		for n := before; n < len(s.sim.received); n++ {
			s.live = append(s.live, n)
		}
	case len(s.live) == 0:
	case kind < 9:
		s.run(remove(s.take()))
	default:
		s.run(setVisibility(s.take(), 0))
	}
}

func (s *sequence) drawSend() queueCall {
	s.sent++

	body := fmt.Sprintf("message %02d", s.sent)
	if !s.fifo {
		return send("", "", body, 0)
	}

	group := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(s.rt, "group")

	return send(group, fmt.Sprint(rapid.IntRange(1, 40).Draw(s.rt, "deduplication")), body, 0)
}

// take removes and returns a valid receipt handle.
func (s *sequence) take() int {
	i := rapid.IntRange(0, len(s.live)-1).Draw(s.rt, "receipt")
	n := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)

	return n
}

func (s *sequence) run(call queueCall) {
	got, want := call.run(s.sim), call.run(s.real)
	if got != want {
		s.rt.Fatalf("%s\n  got from simaws: %s\n  want: %s", call.name, got, want)
	}
}
