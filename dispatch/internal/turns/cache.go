package turns

import (
	"container/list"
	"sync"
	"time"
)

// entryLife bounds how long a warm orchestration is trusted to be worth trying: a Lambda may have been frozen for hours (R6).
const entryLife = time.Hour

// cache keeps suspended orchestrations, and those whose code is of no use in this build, the least recently used going first. An entry is taken out for a turn and put back
// when its commit is confirmed, so that no two turns ever share one.
type cache struct {
	mu    sync.Mutex
	limit int
	bytes int
	order *list.List // of *cached; front: the most recent
	byID  map[string]*list.Element
	now   func() time.Time
}

type cached struct {
	instanceID string
	execution  *execution
	bytes      int
	putAt      time.Time
}

func newCache(limit int, now func() time.Time) *cache {
	return &cache{limit: limit, order: list.New(), byID: map[string]*list.Element{}, now: now}
}

// take removes and returns the warm execution of an instance, or nil.
func (c *cache) take(instanceID string) *execution {
	c.mu.Lock()
	el := c.byID[instanceID]
	if el == nil {
		c.mu.Unlock()
		return nil
	}
	e := c.remove(el)
	c.mu.Unlock()
	if c.now().Sub(e.putAt) > entryLife {
		e.execution.close()
		return nil
	}
	return e.execution
}

// put keeps an execution, and closes those that do not fit any more.
func (c *cache) put(instanceID string, x *execution) {
	e := &cached{instanceID: instanceID, execution: x, bytes: x.bytes(), putAt: c.now()}
	for _, old := range c.insert(e) {
		old.execution.close()
	}
}

func (c *cache) insert(e *cached) (evicted []*cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byID[e.instanceID]; el != nil { // a zombie's: ours is at least as new
		evicted = append(evicted, c.remove(el))
	}
	c.byID[e.instanceID] = c.order.PushFront(e)
	c.bytes += e.bytes
	for c.bytes > c.limit && c.order.Len() > 0 {
		evicted = append(evicted, c.remove(c.order.Back()))
	}
	return evicted
}

func (c *cache) remove(el *list.Element) *cached {
	e, _ := c.order.Remove(el).(*cached)
	delete(c.byID, e.instanceID)
	c.bytes -= e.bytes
	return e
}

// drain closes all entries.
func (c *cache) drain() {
	c.mu.Lock()
	all := c.order
	c.order, c.byID, c.bytes = list.New(), map[string]*list.Element{}, 0
	c.mu.Unlock()
	for el := all.Front(); el != nil; el = el.Next() {
		e, _ := el.Value.(*cached)
		e.execution.close()
	}
}
