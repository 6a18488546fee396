package turns

import "sync"

// sessionPool is a pool of sessions. A session is large, and each invocation needs one.
type sessionPool struct{ pool *sync.Pool }

func newSessionPool() sessionPool {
	return sessionPool{&sync.Pool{New: func() any { return &session{} }}}
}

func (p sessionPool) get() *session {
	s, _ := p.pool.Get().(*session)
	return s
}

// put returns a session that has ended without an error. A session whose code may still run is left to the garbage
// collector. Inline activities report their end to it, and interceptors may still have their functions.
func (p sessionPool) put(s *session) {
	if s.inline.Started() || s.o.observer.Intercepts() {
		return
	}
	*s = session{}
	p.pool.Put(s)
}
