package payloads

import (
	"container/list"
	"sync"
)

const (
	// cacheBytes limits the cached data. An instance that is not warm is replayed from its start each time.
	cacheBytes = 32 << 20
	// maxCachedBytes limits one entry, so that a payload does not replace all others.
	maxCachedBytes = cacheBytes / 4
)

// cache holds data of the payload store, by its hash. The data is encoded, and never changes.
type cache struct {
	mu     sync.Mutex
	bytes  int
	byHash map[string]*list.Element
	used   *list.List // of entry, the most recent one in front
}

type entry struct {
	hash string
	data []byte
}

func newCache() *cache { return &cache{byHash: map[string]*list.Element{}, used: list.New()} }

func (c *cache) get(hash string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byHash[hash]
	if !ok {
		return nil, false
	}
	c.used.MoveToFront(e)
	return e.Value.(*entry).data, true //nolint:forcetypeassert // the list has entries only
}

func (c *cache) has(hash string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byHash[hash] != nil
}

func (c *cache) add(hash string, data []byte) {
	if len(data) > maxCachedBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHash[hash] != nil {
		return
	}
	c.byHash[hash] = c.used.PushFront(&entry{hash, data})
	c.bytes += len(data)
	for c.bytes > cacheBytes {
		last := c.used.Back()
		old := c.used.Remove(last).(*entry) //nolint:forcetypeassert // the list has entries only
		delete(c.byHash, old.hash)
		c.bytes -= len(old.data)
	}
}
