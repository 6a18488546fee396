package dynamo

import (
	"container/list"
	"sync"
)

// lru is a bounded cache of the most recently used values. It is safe for concurrent use.
type lru[V any] struct {
	mu    sync.Mutex
	limit int
	cost  int
	order list.List // of *remembered[V]; front: the most recent
	byKey map[string]*list.Element
}

type remembered[V any] struct {
	key   string
	value V
	cost  int
}

func newLRU[V any](limit int) *lru[V] {
	return &lru[V]{limit: limit, byKey: map[string]*list.Element{}}
}

func (l *lru[V]) get(key string) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	el := l.byKey[key]
	if el == nil {
		return v, false
	}
	l.order.MoveToFront(el)
	r, _ := el.Value.(*remembered[V])
	return r.value, true
}

func (l *lru[V]) has(key string) bool {
	_, ok := l.get(key)
	return ok
}

// add stores a value, unless its cost exceeds the limit.
func (l *lru[V]) add(key string, v V, cost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if el := l.byKey[key]; el != nil {
		l.remove(el)
	}
	if cost > l.limit {
		return
	}
	l.byKey[key] = l.order.PushFront(&remembered[V]{key, v, cost})
	for l.cost += cost; l.cost > l.limit; {
		l.remove(l.order.Back())
	}
}

// forget removes a value that is wrong.
func (l *lru[V]) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if el := l.byKey[key]; el != nil {
		l.remove(el)
	}
}

func (l *lru[V]) remove(el *list.Element) {
	r, _ := l.order.Remove(el).(*remembered[V])
	delete(l.byKey, r.key)
	l.cost -= r.cost
}
