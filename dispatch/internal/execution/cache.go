package execution

import (
	"container/list"
	"sync"
	"time"
)

// maxIdle is the time for which a warm execution is used. A Lambda environment may have been frozen for hours (R6).
const maxIdle = time.Hour

// Cache stores warm executions, including executions whose code cannot run in this build, and evicts the least recently
// used. A session takes its entry out and puts it back when its commits are confirmed, so that two sessions never share
// an entry. Cache is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	limit int
	bytes int
	order *list.List // of *cached; front: the most recent
	byID  map[string]*list.Element
	now   func() time.Time
}

type cached struct {
	instanceID string
	execution  *Execution
	bytes      int
	putAt      time.Time
}

// NewCache returns an empty cache with a size limit in bytes.
func NewCache(limit int, now func() time.Time) *Cache {
	return &Cache{limit: limit, order: list.New(), byID: map[string]*list.Element{}, now: now}
}

// Take removes and returns the warm execution of an instance, or returns nil.
func (c *Cache) Take(instanceID string) *Execution {
	c.mu.Lock()
	el := c.byID[instanceID]
	if el == nil {
		c.mu.Unlock()
		return nil
	}
	e := c.remove(el)
	c.mu.Unlock()
	if c.now().Sub(e.putAt) > maxIdle {
		e.execution.Close()
		return nil
	}
	return e.execution
}

// Put stores an execution, and closes executions that exceed the size limit.
func (c *Cache) Put(instanceID string, x *Execution) {
	e := &cached{instanceID: instanceID, execution: x, bytes: x.bytes(), putAt: c.now()}
	for _, old := range c.insert(e) {
		old.execution.Close()
	}
}

func (c *Cache) insert(e *cached) (evicted []*cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byID[e.instanceID]; el != nil { // from a session that was frozen: the new entry is at least as recent
		evicted = append(evicted, c.remove(el))
	}
	c.byID[e.instanceID] = c.order.PushFront(e)
	c.bytes += e.bytes
	for c.bytes > c.limit && c.order.Len() > 0 {
		evicted = append(evicted, c.remove(c.order.Back()))
	}
	return evicted
}

func (c *Cache) remove(el *list.Element) *cached {
	e, _ := c.order.Remove(el).(*cached)
	delete(c.byID, e.instanceID)
	c.bytes -= e.bytes
	return e
}

// Close closes all executions.
func (c *Cache) Close() {
	c.mu.Lock()
	all := c.order
	c.order, c.byID, c.bytes = list.New(), map[string]*list.Element{}, 0
	c.mu.Unlock()
	for el := all.Front(); el != nil; el = el.Next() {
		e, _ := el.Value.(*cached)
		e.execution.Close()
	}
}
