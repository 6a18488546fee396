package activities

import (
	"fmt"
	"math/rand/v2"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

func massCancel(f *kit.Fixture) {
	e := f.Start("a")
	const losers = 2000
	behind(f)
	e.Ack(recordTurn(e, cancels("select_loser", history.Range{First: 3, Last: 2 + losers})))
	c := f.Cancels(e.Head.ExecutionID)
	if len(c) != 1 || c.Of(2).Requested || !c.Of(3).Requested || !c.Of(2+losers).Requested || c.Of(3+losers).Requested {
		f.T.Errorf("cancel record: got %s", kit.Shorten(kit.Text(c)))
	}
	for _, op := range []kit.Operation{kit.Write, kit.Update, kit.Read, kit.Send, kit.Delete} {
		few, many := callsToCancel(f, op, 1), callsToCancel(f, op, losers)
		f.WantEqual(fmt.Sprintf("calls of kind %s for %d cancels must not exceed those for one", op, losers), many, few)
	}
}

// callsToCancel returns the number of calls of a kind to cancel n activities in one turn and to read the decision.
func callsToCancel(f *kit.Fixture, op kit.Operation, n int64) int {
	f.T.Helper()
	e := f.Start(fmt.Sprintf("%s-%d", op, n))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	calls := f.Count(op)
	e.Ack(recordTurn(e, cancels("select_loser", history.Range{First: 3, Last: 2 + n})))
	f.Cancels(e.Head.ExecutionID)
	return calls.Hits()
}

// behind makes eventually consistent reads miss all later writes, if the backend supports StaleReads.
func behind(f *kit.Fixture) {
	const more = 1000 // more than any of these tests writes
	if f.Can(kit.StaleReads) {
		f.Lag(more)
	}
}

// massCancelFragmented cancels every second of 200,000 activities, so that ranges do not shorten the record.
func massCancelFragmented(f *kit.Fixture) {
	e := f.Start("a")
	const n = 200_000
	var ids []history.Range
	for id := int64(4); id < n; id += 2 {
		ids = append(ids, one(id))
	}
	e.Ack(recordTurn(e, cancels("orchestration_terminal_failed", ids...)))
	c := f.Cancels(e.Head.ExecutionID)
	const step = 997 // odd, to check even and odd IDs; each check searches the ranges
	for id := int64(1); id <= n; id += step {
		if want := id >= 4 && id < n && id%2 == 0; c.Of(id).Requested != want {
			f.T.Fatalf("activity %d: got %v, want %v", id, c.Of(id).Requested, want)
		}
	}
}

// anyCancels checks that a read returns unsorted ranges of different sizes unchanged.
func anyCancels(f *kit.Fixture) {
	e := f.Start("a")
	ids := []history.Range{
		{First: 900, Last: 950},
		one(7),
		{First: 100, Last: 163},
		one(9), one(11), one(13),
		{First: 8000, Last: 8001},
		one(15),
	}
	e.Ack(recordTurn(e, cancels("requested", ids...), cancels("timeout", one(8), one(10))))
	c := f.Cancels(e.Head.ExecutionID)
	want := map[int64]string{8: "timeout", 10: "timeout"}
	for _, r := range ids {
		for id := r.First; id <= r.Last; id++ {
			want[id] = "requested"
		}
	}
	for id := int64(1); id < 8100; id++ {
		if got := c.Of(id).Reason; got != want[id] {
			f.T.Errorf("activity %d: got %q, want %q", id, got, want[id])
		}
	}
}

// severalItems writes reasons that do not compress and need twice the size of an item of most stores.
func severalItems(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Turn(kit.TurnStarted())
	for id := range int64(600) {
		t.Cancels = append(t.Cancels, provider.ActivityCancel{
			IDs: []history.Range{one(id + 3)}, Reason: incompressible(uint64(id), 1<<10), At: f.StoredNow(),
		})
	}
	e.Ack(t)
	e.Ack(recordTurn(e, cancels("requested", one(3), one(9999))))
	for _, from := range []int64{0, 1} {
		record, _ := f.CancelsFrom(e.Head.ExecutionID, from)
		for i := range t.Cancels {
			if got := record.Of(int64(i + 3)).Reason; got != t.Cancels[i].Reason {
				f.T.Fatalf("read from segment %d: activity %d has reason %q, want %q", from, i+3, kit.Shorten(got),
					kit.Shorten(t.Cancels[i].Reason))
			}
		}
		f.WantEqual("reason of another turn", record.Of(9999).Reason, "requested")
	}
}

// incompressible returns text that does not compress. Each seed results in a different text.
func incompressible(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('!' + rng.IntN('~'-'!'))
	}
	return string(b)
}

func tooManyCancels(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Turn(kit.TurnStarted())
	for id := range int64(6 << 10) {
		t.Cancels = append(t.Cancels, provider.ActivityCancel{
			IDs: []history.Range{one(id + 3)}, Reason: incompressible(uint64(id), 1<<10), At: f.StoredNow(),
		})
	}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.WantErrorIs(err, provider.ErrTooLarge)
	e.WantReasons("", "", "")
	e.WantSegments()
}

func largeCancel(f *kit.Fixture) {
	e := f.Start("a")
	t := cancelTurn(e, kit.TurnStarted(), kit.Bulky(900<<10), cancels("requested", one(3)))
	e.Ack(t)
	e.WantSegments(t)
	e.WantReasons("", "", "requested")
}
