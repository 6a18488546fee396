package differential_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// queueScript is a sequence of calls. The map differs has the response of AWS for each call with a known different
// response of the emulator. Such a call is the last one for its message.
type queueScript struct {
	queue      string
	visibility time.Duration
	calls      []queueCall
	differs    map[string]string
}

func TestQueue_scriptedCalls_matchMinistack(t *testing.T) {
	t.Parallel()

	for name, s := range queueScripts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, actual := queues(t, s.queue, s.visibility, 0)
			sim, emulator := &counter{queue: simulated, ctx: t.Context()}, &counter{queue: actual, ctx: t.Context()}

			for _, call := range s.calls {
				got, want := call.run(sim), call.run(emulator)

				if aws, ok := s.differs[call.name]; ok {
					if want == aws {
						t.Errorf("%s: matches AWS; remove the exception", call.name)
					}

					want = aws
				}

				if got != want {
					t.Fatalf("%s\n  got from simaws: %s\n  want: %s", call.name, got, want)
				}
			}
		})
	}
}

// pause sleeps once for each side, so twice the duration passes on both sides.
func pause(d time.Duration) queueCall {
	return queueCall{"pause", func(*counter) string {
		time.Sleep(d)

		return ""
	}}
}

const (
	long   = 30 * time.Second
	second = time.Second

	refused = "InvalidParameterValue"
)

func queueScripts() map[string]queueScript {
	lot := strings.Repeat("x", 1<<20)
	ids := []string{}
	longID := strings.Repeat("i", 129)
	longGroup, longDeduplication := send(longID, "8", "x", 0), send("a", longID, "x", 0)

	for i := range 11 {
		ids = append(ids, fmt.Sprint(i))
	}

	return map[string]queueScript{
		"fifo groups": {"groups.fifo", long, []queueCall{
			send("a", "1", "a1", 0), send("a", "2", "a2", 0), send("a", "3", "a3", 0), send("b", "4", "b1", 0),
			receive(1, 0, 0), receive(10, 0, 0), receive(10, 0, 0), remove(0), receive(10, 0, 0),
			setVisibility(2, 0), setVisibility(3, 0), receive(10, 0, 0), send("a", "1", "again", 0), receive(10, 0, 0),
		}, nil},
		"fifo refusals": {"refusals.fifo", long, []queueCall{
			send("", "1", "x", 0), send("a", "", "x", 0), send("a", "1", "x", 5), sendBatch(true, "1", "2"),
			receive(10, 0, 0), longGroup, longDeduplication,
		}, map[string]string{longGroup.name: refused, longDeduplication.name: refused}},
		"standard": {"standard", long, []queueCall{
			send("", "", "x", 0), receive(1, 0, 0), receive(1, 0, 0), setVisibility(0, 0), receive(1, 0, 0), remove(1),
			receive(1, 0, 0), send("", "", "y\x01", 0), send("", "", lot, 0), send("", "", lot+"x", 0),
			receive(11, 0, 0), receive(1, 0, 21), receive(1, 43201, 0),
		}, map[string]string{receive(1, 0, 21).name: refused, receive(1, 43201, 0).name: refused}},
		"batches": {"batches", long, []queueCall{
			sendBatch(false, "a", "b"), sendBatch(false), sendBatch(false, "a", "a"), sendBatch(false, ids...),
			sendBatch(false, "a b"),
		}, nil},
		"delay": {"delay", long, []queueCall{
			send("", "", "later", 1), receive(1, 0, 0), pause(second), receive(1, 0, 2), send("", "", "far", 901),
		}, map[string]string{send("", "", "far", 901).name: refused}},
		"expired standard": {"expired", second, []queueCall{
			send("", "", "x", 0), receive(1, 0, 0), pause(1200 * time.Millisecond), setVisibility(0, 5),
		}, map[string]string{setVisibility(0, 5).name: "MessageNotInflight"}},
		"expired fifo": {"expired.fifo", second, []queueCall{
			send("a", "1", "x", 0), receive(1, 0, 0), pause(1200 * time.Millisecond), remove(0),
		}, map[string]string{remove(0).name: refused}},
		"redelivery": {"redelivery.fifo", second, []queueCall{
			send("a", "1", "x", 0), send("a", "2", "y", 0), receive(1, 0, 0), receive(1, 0, 0),
			pause(1200 * time.Millisecond), receive(1, 30, 0), receive(10, 0, 0), remove(1), receive(10, 0, 0),
		}, nil},
	}
}

func TestDeadLetterQueue_receiveLimitReached_matchesMinistack(t *testing.T) {
	t.Parallel()

	for _, suffix := range []string{"", ".fifo"} {
		t.Run("queue"+suffix, func(t *testing.T) {
			t.Parallel()

			simulated, actual := queues(t, "poison"+suffix, long, 2)
			results := [2]string{}

			for i, q := range []queue{simulated, actual} {
				source, dead := &counter{queue: q, ctx: t.Context()}, &counter{queue: q.dead(), ctx: t.Context()}
				group, deduplication := "", ""

				if suffix != "" {
					group, deduplication = "g", "1"
				}

				send(group, deduplication, "x", 0).run(source)

				for n := range 2 {
					results[i] += receive(1, 0, 0).run(source) + setVisibility(n, 0).run(source)
				}

				results[i] += "then " + receive(1, 0, 0).run(source) + " dead "

				receive(1, 0, 0).run(dead)
				results[i] += fmt.Sprint(len(dead.received), *dead.received[0].Body, dead.received[0].MessageId != nil)
			}

			if results[0] != results[1] {
				t.Errorf("\n  got from simaws: %s\n  want: %s", results[0], results[1])
			}
		})
	}
}
