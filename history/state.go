package history

// State is the fold of an execution's history, as far as events were applied. The zero State has no events and keeps
// only its Standing, which takes the same memory however long the history is; NewState keeps more.
//
// A State may begin in the middle of a history: of what was scheduled before, it knows what Expect adds. It is not safe
// for concurrent use.
type State struct {
	Standing

	keep Keep
	open map[int64]Open
	// External events by name: mail counts those that have arrived without a wait, waits has the ids of the waits in
	// their order.
	mail  map[string]int
	waits map[string][]int64
	// parked has the name of each parked input, the oldest first; an empty name for an input that is not an external
	// event.
	parked []string
	// awaited has, by the ids of updates that are not over, the orchestrations that wait for their answers.
	awaited map[string][]Parent
	// settled and cancelAsked are ids in the order of history.
	settled, cancelAsked []Range
}

// Keep selects what a State keeps beside its Standing.
type Keep uint8

const (
	// KeepTimers keeps what waits for a time: timers, and activities with a schedule-to-close time or a retry policy,
	// or that are waited for when they are cancelled.
	KeepTimers Keep = 1 << iota
	// KeepOpen keeps everything that is open.
	KeepOpen
	// KeepSettled keeps the ids of what is settled.
	KeepSettled
)

// NewState returns the state after events, usually the first of an execution.
func NewState(keep Keep, events ...Event) *State {
	s := &State{keep: keep}
	s.Apply(events...)
	return s
}

// Apply applies the next events. Applying a history in several cuts gives the same state as applying it at once.
func (s *State) Apply(events ...Event) {
	for i := range events {
		e := &events[i]
		s.apply(e)
		if s.keep&(KeepTimers|KeepOpen) != 0 {
			s.track(e)
		}
		if s.keep&KeepSettled != 0 {
			s.noteSettled(e)
			for k := range e.Inputs { // parked inputs settle their events once their turn comes
				s.noteSettled(&e.Inputs[k])
			}
		}
	}
}

// Keeps reports whether the state keeps all of k.
func (s *State) Keeps(k Keep) bool { return s.keep&k == k }

// Settled returns the ids that are settled, parked outcomes included, in the order of history; an id may occur twice.
// It needs KeepSettled. Activities whose cancel was requested are returned separately, in cancelled: the request
// settles those whose end is not waited for (Open.Waits).
func (s *State) Settled() (ids, cancelled []Range) { return s.settled, s.cancelAsked }

// SettledSet is Settled as a set, for a state that has seen the whole history. It needs KeepSettled and KeepOpen.
func (s *State) SettledSet() map[int64]bool {
	set := map[int64]bool{}
	for _, r := range s.settled {
		for id := r.First; id <= r.Last; id++ {
			set[id] = true
		}
	}
	for _, r := range s.cancelAsked {
		for id := r.First; id <= r.Last; id++ {
			if !s.open[id].Waits {
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
