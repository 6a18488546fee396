package history

// State is the state of an execution after some events of its history. The zero State has no events and tracks only the
// Summary, whose size does not depend on the length of the history. Use NewState to track more.
//
// A State can start in the middle of a history. In this case, add earlier open work with AddOpen. A State is not safe
// for concurrent use.
type State struct {
	Summary

	keep Tracking
	open map[int64]OpenItem
	// mail maps the name of an external event to the number of events that have arrived without a wait. waits maps the
	// name to the IDs of the waits, oldest first.
	mail  map[string]int
	waits map[string][]int64
	// parked contains the name of each parked input, oldest first. The name is empty if the input is not an external
	// event.
	parked []string
	// awaited maps the ID of an update that has not ended to the orchestrations that wait for its result.
	awaited map[string][]Parent
	// settled and cancelRequested are the results of Settled.
	settled, cancelRequested []Range
}

// Tracking selects the data that a State tracks in addition to its Summary.
type Tracking uint8

const (
	// TrackTimers tracks timers, and activities with a schedule-to-close timeout, a retry policy or
	// WaitForCancellation.
	TrackTimers Tracking = 1 << iota
	// TrackOpen tracks all open work.
	TrackOpen
	// TrackSettled tracks the IDs of settled work.
	TrackSettled
)

// NewState returns the state after events. They are usually the first events of an execution.
func NewState(keep Tracking, events ...Event) *State {
	s := &State{keep: keep}
	s.Apply(events...)
	return s
}

// Apply applies the next events. The result is the same for one call and for several calls with parts of the history.
func (s *State) Apply(events ...Event) {
	for i := range events {
		e := &events[i]
		s.apply(e)
		if s.keep&(TrackTimers|TrackOpen) != 0 {
			s.track(e)
		}
		if s.keep&TrackSettled != 0 {
			s.noteSettled(e)
			for k := range e.Inputs { // a parked outcome counts as settled
				s.noteSettled(&e.Inputs[k])
			}
		}
	}
}

// Tracks reports whether the state tracks all data of k.
func (s *State) Tracks(k Tracking) bool { return s.keep&k == k }

// Settled returns the IDs of settled work, including parked outcomes, in the order of the history. An ID can occur
// twice. cancelled contains the IDs of activities whose cancellation was requested. The request settles an activity
// unless OpenItem.WaitsForCancellation is true. The state must have TrackSettled.
func (s *State) Settled() (ids, cancelled []Range) { return s.settled, s.cancelRequested }

// SettledSet returns the IDs of settled work as a set. The state must contain the whole history, with TrackSettled and
// TrackOpen.
func (s *State) SettledSet() map[int64]bool {
	set := map[int64]bool{}
	for _, r := range s.settled {
		for id := r.First; id <= r.Last; id++ {
			set[id] = true
		}
	}
	for _, r := range s.cancelRequested {
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
		into = &s.cancelRequested
	}
	if e.SourceEventID != 0 {
		*into = AppendID(*into, e.SourceEventID)
		return
	}
	*into = append(*into, e.SourceEventIDs...)
}
