package vault

import (
	"container/list"
	"sync"
)

const (
	// cacheBytes bounds what is kept of what was stored or fetched last: an instance that is not warm is replayed from its beginning each time.
	cacheBytes = 32 << 20
	// cachedMost is the largest that is kept: one payload must not drive out all others.
	cachedMost = cacheBytes / 4
)

// cache keeps what lies in the store, by its hash: it never changes. It holds data as it is stored, encoded.
type cache struct {
	mu    sync.Mutex
	bytes int
	by    map[string]*list.Element
	used  *list.List // of entry, the one that was used last in front
}

type entry struct {
	hash string
	data []byte
}

func newCache() *cache { return &cache{by: map[string]*list.Element{}, used: list.New()} }

func (c *cache) get(hash string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.by[hash]
	if !ok {
		return nil, false
	}
	c.used.MoveToFront(e)
	return e.Value.(*entry).data, true //nolint:forcetypeassert // nothing else is in it
}

func (c *cache) has(hash string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[hash] != nil
}

func (c *cache) add(hash string, data []byte) {
	if len(data) > cachedMost {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[hash] != nil {
		return
	}
	c.by[hash] = c.used.PushFront(&entry{hash, data})
	c.bytes += len(data)
	for c.bytes > cacheBytes {
		last := c.used.Back()
		old := c.used.Remove(last).(*entry) //nolint:forcetypeassert // nothing else is in it
		delete(c.by, old.hash)
		c.bytes -= len(old.data)
	}
}
