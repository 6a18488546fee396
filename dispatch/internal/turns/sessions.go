package turns

import "sync"

// sessions is the pool of sessions. A session is large, and each invocation needs one.
type sessions struct{ pool *sync.Pool }

func newSessions() sessions {
	return sessions{&sync.Pool{New: func() any { return &session{} }}}
}

func (p sessions) get() *session {
	s, _ := p.pool.Get().(*session)
	return s
}

// put returns a session that has ended without an error. A session whose code may still run is left to the garbage
// collector. Inline activities report their end to it, and interceptors may still have their functions.
func (p sessions) put(s *session) {
	if s.inline.Started() || s.o.observer.Intercepts() {
		return
	}
	*s = session{}
	p.pool.Put(s)
}
