package deletion

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Reading a history backward finds the same outstanding children as reading it forward, even if the read is interrupted
// and resumed.
func TestUnsettledChildren_historyIsReadBackward_equalsForward(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		segments := randomHistory(random)
		forwards := history.NewState(history.TrackOpen)
		for i := range segments {
			forwards.Apply(segments[i].Events...)
		}
		var want, got []int64
		for _, e := range forwards.CancelOutstanding("r") {
			if e.Kind == history.SubOrchestrationCancelRequested {
				want = append(want, e.SourceEventID)
			}
		}
		settled := map[int64]bool{}
		for _, s := range slices.Backward(segments) {
			for _, c := range unsettledChildren(s.Events, settled) {
				got = append(got, c.SourceEventID)
			}
			if random.IntN(3) == 0 { // the deletion is interrupted here and resumed
				doc, err := encodeSearch(s.Sequence, settled)
				if err != nil {
					t.Fatal(err)
				}
				var before int64
				if before, settled, err = decodeSearch(doc); err != nil || before != s.Sequence {
					t.Fatal(doc, err)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: backward search %v, forward search %v", seed, got, want)
		}
	}
}

// randomHistory returns segments that start children, activities and timers. Some of the children complete, sometimes
// in parked inputs.
func randomHistory(random *rand.Rand) (segments []provider.Segment) {
	var open []int64
	id := int64(0)
	for sequence := range int64(30) {
		s := provider.Segment{Sequence: sequence}
		for range 1 + random.IntN(20) {
			id++
			e := history.Event{
				ID: id,
				Kind: []history.Kind{
					history.SubOrchestrationScheduled, history.ActivityScheduled, history.TimerCreated,
				}[random.IntN(3)],
			}
			if n := len(open); n > 0 && random.IntN(2) == 0 {
				at := random.IntN(n)
				e.Kind, e.SourceEventID = history.SubOrchestrationCompleted, open[at]
				open = slices.Delete(open, at, at+1)
				if random.IntN(4) == 0 {
					e = history.Event{
						ID: id, Kind: history.InputsParked,
						Inputs: []history.Event{
							{Kind: history.SubOrchestrationCompleted, SourceEventID: e.SourceEventID},
						},
					}
				}
			} else {
				e.InstanceID = "child"
				open = append(open, id)
			}
			s.Events = append(s.Events, e)
		}
		segments = append(segments, s)
	}
	return segments
}
