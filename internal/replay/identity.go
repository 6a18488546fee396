package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/perdure/perdure/history"
)

// identity is who the code is told that it is, and what it draws as such: what it has been told once stays true in each replay, and in a restart that
// takes the history over (R30).
type identity struct {
	self          history.ExecutionRef
	random, uuids stream
}

// become has the code be told from here on that it is the instance and the execution which an event names.
func (i *identity) become(ev *history.Event) {
	i.self = history.ExecutionRef{InstanceID: ev.InstanceID, ExecutionID: ev.ExecutionID}
	i.random.become(ev.ExecutionID)
	i.uuids.become(ev.ExecutionID)
}

// numbers and ids are what the code draws random numbers and ids from.
func (i *identity) numbers() *rand.Rand { return i.random.of("rand", i.self.ExecutionID) }

func (i *identity) ids() *rand.Rand { return i.uuids.of("uuid", i.self.ExecutionID) }

// markDraws returns what takes back the draws that are made meanwhile, also by code that holds the source: no replay makes those of a validator again.
func (i *identity) markDraws() (takeBack func()) {
	i.numbers()
	i.ids()
	numbers, ids := *i.random.source, *i.uuids.source
	return func() { *i.random.source, *i.uuids.source = numbers, ids }
}

// childID is the instance id of a child that was given none. A restart has another one where the child had not ended by then: history has it, in the
// past event, which is nil where the code decides anew.
func (i *identity) childID(kind history.Kind, eventID int64, past *history.Event) string {
	id := i.self.ChildID(eventID)
	if past != nil && past.InstanceID != id && past.Kind == kind && past.ID == eventID && strings.HasSuffix(past.InstanceID, fmt.Sprintf(":%d", eventID)) {
		return past.InstanceID
	}
	return id
}
