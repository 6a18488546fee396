package execution

import (
	"sort"
	"time"

	"github.com/perdure/perdure/history"
)

// Index finds the segments and the times of events of an execution.
type Index struct {
	// firstIDs are the IDs of the first events of the segments, and times are their times in Unix milliseconds.
	firstIDs, times []int64
	// seconds are the second turns of segments with two turns.
	seconds []turnStart
	lastID  int64
}

// turnStart is the ID of the first event of a turn, and its time in Unix milliseconds.
type turnStart struct{ id, at int64 }

// add adds the next segment.
func (x *Index) add(events []history.Event) {
	first := &events[0]
	x.firstIDs = append(x.firstIDs, first.ID)
	x.times = append(x.times, first.Time.UnixMilli())
	x.lastID = events[len(events)-1].ID
	if first.Kind != history.TurnStarted {
		return
	}
	rest := events[1:]
	for i := range rest {
		if e := &rest[i]; e.Kind == history.TurnStarted {
			x.seconds = append(x.seconds, turnStart{e.ID, e.Time.UnixMilli()})
		}
	}
}

// SegmentOf returns the segment of an event. An event of the current turn is in the next segment.
func (x *Index) SegmentOf(eventID int64) int64 {
	if eventID > x.lastID {
		return int64(len(x.firstIDs))
	}
	return int64(sort.Search(len(x.firstIDs), func(i int) bool { return x.firstIDs[i] > eventID })) - 1
}

// TimeOf returns the time of an event.
func (x *Index) TimeOf(eventID int64) time.Time {
	segment := x.SegmentOf(eventID)
	i := sort.Search(len(x.seconds), func(i int) bool { return x.seconds[i].id > eventID })
	if i > 0 && x.seconds[i-1].id > x.firstIDs[segment] {
		return time.UnixMilli(x.seconds[i-1].at)
	}
	return time.UnixMilli(x.times[segment])
}

// firstTurn is the segment of the first turn. The segment before it is the start.
const firstTurn = 1

// FirstTurnAt returns the time of the first turn. It requires that there was one.
func (x *Index) FirstTurnAt() time.Time { return time.UnixMilli(x.times[firstTurn]) }

// HadTurnBefore reports whether the execution had a turn before a time. The time of the start is not sufficient,
// because a client may prepare a start and commit it in a transaction much later.
func (x *Index) HadTurnBefore(at time.Time) bool {
	return len(x.times) > firstTurn && x.times[firstTurn] < at.UnixMilli()
}
