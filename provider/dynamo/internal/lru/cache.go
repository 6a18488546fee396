// Package lru implements a bounded cache of the most recently used values.
package lru

import (
	"container/list"
	"sync"
)

// Cache is a bounded cache of the most recently used values. It is safe for concurrent use.
type Cache[V any] struct {
	mu    sync.Mutex
	limit int
	cost  int
	order list.List // of *remembered[V]; front: the most recent
	byKey map[string]*list.Element
}

type entry[V any] struct {
	key   string
	value V
	cost  int
}

// New returns a cache whose values have a total cost of at most limit.
func New[V any](limit int) *Cache[V] {
	return &Cache[V]{limit: limit, byKey: map[string]*list.Element{}}
}

// Get returns a value and marks it as used.
func (l *Cache[V]) Get(key string) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	el := l.byKey[key]
	if el == nil {
		return v, false
	}
	l.order.MoveToFront(el)
	r, _ := el.Value.(*entry[V])
	return r.value, true
}

// Has reports whether the cache has a value, and marks it as used.
func (l *Cache[V]) Has(key string) bool {
	_, ok := l.Get(key)
	return ok
}

// Add stores a value, unless its cost exceeds the limit.
func (l *Cache[V]) Add(key string, v V, cost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if el := l.byKey[key]; el != nil {
		l.remove(el)
	}
	if cost > l.limit {
		return
	}
	l.byKey[key] = l.order.PushFront(&entry[V]{key, v, cost})
	for l.cost += cost; l.cost > l.limit; {
		l.remove(l.order.Back())
	}
}

// Remove removes a value that is wrong.
func (l *Cache[V]) Remove(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if el := l.byKey[key]; el != nil {
		l.remove(el)
	}
}

func (l *Cache[V]) remove(el *list.Element) {
	r, _ := l.order.Remove(el).(*entry[V])
	delete(l.byKey, r.key)
	l.cost -= r.cost
}
