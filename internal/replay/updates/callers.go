package updates

import (
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
)

// maxCallerBytes limits the size of the list of orchestrations that wait for updates of an execution. The end of the
// execution, or its next execution, must contain the whole list. It allows about 12,000 instance IDs of 36 bytes.
const maxCallerBytes = 2 << 20

// callerBytes returns the approximate size of a waiting orchestration in the history.
func callerBytes(c *history.Parent) int {
	const each = 128
	return each + len(c.InstanceID)
}

// callers are the orchestrations that wait for updates of an execution, and the senders of updates that were
// redelivered in the running turn.
type callers struct {
	waiting map[string][]history.Parent // by the IDs of updates that have not ended
	bytes   int                         // the callerBytes of these

	ended    map[string]bool             // the IDs of updates that ended in this turn
	repeated map[string]string           // the names of ended updates that were redelivered in this turn, by ID
	again    map[string][]history.Parent // the senders of these
	rejected []history.Parent            // the senders that may not wait, in this turn
}

// of returns the orchestrations that wait for an update.
func (c *callers) of(updateID string) []history.Parent { return c.waiting[updateID] }

// has reports whether an orchestration waits for an update.
func (c *callers) has(updateID string, caller *history.Parent) bool {
	return slices.Contains(c.waiting[updateID], *caller)
}

// isFull reports whether no other orchestration may wait for a running update.
func (c *callers) isFull() bool { return c.bytes >= maxCallerBytes }

// add adds an orchestration that waits for an update.
func (c *callers) add(updateID string, caller *history.Parent) {
	if c.waiting == nil {
		c.waiting = map[string][]history.Parent{}
	}
	c.waiting[updateID] = append(c.waiting[updateID], *caller)
	c.bytes += callerBytes(caller)
}

// end removes the orchestrations that wait for an update, because it has ended.
func (c *callers) end(updateID string) {
	waiting := c.waiting[updateID]
	for i := range waiting {
		c.bytes -= callerBytes(&waiting[i])
	}
	delete(c.waiting, updateID)
}

// recordEnd records that the running turn ends an update.
func (c *callers) recordEnd(updateID string) {
	if c.ended == nil {
		c.ended = map[string]bool{}
	}
	c.ended[updateID] = true
}

// recordRejected records an orchestration that may not wait for the update, because too many others wait for it.
func (c *callers) recordRejected(ev *history.Event) {
	if ev.Kind == history.UpdateAwaited && ev.Parent != nil && !c.has(ev.EventID, ev.Parent) {
		c.rejected = append(c.rejected, *ev.Parent)
	}
}

// recordRepeated records a redelivered update that has ended. Its sender may not have received a response.
func (c *callers) recordRepeated(ev *history.Event) {
	if c.ended[ev.EventID] {
		return // the commit of this turn sends the response
	}
	if c.repeated == nil {
		c.repeated = map[string]string{}
	}
	c.repeated[ev.EventID] = ev.Name
	if ev.Kind == history.UpdateAwaited {
		if c.again == nil {
			c.again = map[string][]history.Parent{}
		}
		c.again[ev.EventID] = append(c.again[ev.EventID], *ev.Parent)
	}
}

// updateIDs returns the sorted IDs of the updates that orchestrations wait for.
func (c *callers) updateIDs() []string { return slices.Sorted(maps.Keys(c.waiting)) }
