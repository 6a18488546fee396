package history

// State is the state of an execution after some events of its history. The zero State has no events and keeps only its
// Summary, whose size does not depend on the length of the history. NewState keeps more.
//
// A State can start in the middle of a history; add earlier open work with AddOpen. A State is not safe for concurrent
// use.
type State struct {
	Summary

	keep Tracking
	open map[int64]OpenItem
	// External events by name: mail is the number of events that have arrived without a wait, and waits has the IDs of
	// the waits in their order.
	mail  map[string]int
	waits map[string][]int64
	// parked has the name of each parked input, the oldest first. The name is empty if the input is not an external
	// event.
	parked []string
	// awaited has the orchestrations that wait for results of updates, by the IDs of updates that have not ended.
	awaited map[string][]Parent
	// settled and cancelAsked are IDs in the order of the history.
	settled, cancelAsked []Range
}

// Tracking selects the data that a State keeps in addition to its Summary.
type Tracking uint8

const (
	// TrackTimers keeps timers, and activities that have a schedule-to-close time or a retry policy or whose end is
	// awaited when they are cancelled.
	TrackTimers Tracking = 1 << iota
	// TrackOpen keeps all open work.
	TrackOpen
	// TrackSettled keeps the IDs of settled work.
	TrackSettled
)

// NewState returns the state after events, which are usually the first ones of an execution.
func NewState(keep Tracking, events ...Event) *State {
	s := &State{keep: keep}
	s.Apply(events...)
	return s
}

// Apply applies the next events. The result does not depend on how the history is split into calls.
func (s *State) Apply(events ...Event) {
	for i := range events {
		e := &events[i]
		s.apply(e)
		if s.keep&(TrackTimers|TrackOpen) != 0 {
			s.track(e)
		}
		if s.keep&TrackSettled != 0 {
			s.noteSettled(e)
			for k := range e.Inputs { // parked inputs settle their events when their turn comes
				s.noteSettled(&e.Inputs[k])
			}
		}
	}
}

// Tracks reports whether the state keeps everything in k.
func (s *State) Tracks(k Tracking) bool { return s.keep&k == k }

// Settled returns the IDs of settled work, including parked outcomes, in the order of the history. An ID can occur
// twice. cancelled has the IDs of activities whose cancellation was requested; the request settles those whose end is
// not awaited (OpenItem.WaitsForCancellation). The state must have TrackSettled.
func (s *State) Settled() (ids, cancelled []Range) { return s.settled, s.cancelAsked }

// SettledSet returns the IDs of Settled as a set. The state must have seen the whole history, with TrackSettled and
// TrackOpen.
func (s *State) SettledSet() map[int64]bool {
	set := map[int64]bool{}
	for _, r := range s.settled {
		for id := r.First; id <= r.Last; id++ {
			set[id] = true
		}
	}
	for _, r := range s.cancelAsked {
		for id := r.First; id <= r.Last; id++ {
			if !s.open[id].WaitsForCancellation {
				set[id] = true
			}
		}
	}
	return set
}

func (s *State) noteSettled(e *Event) {
	if !e.settles() {
		return
	}
	into := &s.settled
	if e.Kind == ActivityCancelRequested {
		into = &s.cancelAsked
	}
	if e.SourceEventID != 0 {
		*into = AppendID(*into, e.SourceEventID)
		return
	}
	*into = append(*into, e.SourceEventIDs...)
}
