package turns

import "sync"

// sessions are those that no item has. They are used again, as rooms are: a session is large, and there is one for every invocation.
type sessions struct{ unused *sync.Pool }

func newSessions() sessions {
	return sessions{&sync.Pool{New: func() any { return &session{} }}}
}

// take returns an empty session.
func (p sessions) take() *session {
	s, _ := p.unused.Get().(*session)
	return s
}

// giveBack takes back a session that has come to its end without an error. One whose code may still run is left to the collector: that of inline
// activities tells the session its end, and an interceptor may have kept what it was given.
func (p sessions) giveBack(s *session) {
	if s.steps.changed != nil || s.o.interceptors != nil {
		return
	}
	*s = session{}
	p.unused.Put(s)
}
