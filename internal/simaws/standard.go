package simaws

// standardOrder orders the messages of a standard queue: visible messages by rank, and hidden messages by the time at
// which they become visible.
type standardOrder struct {
	rank          func(*message) int64
	ready, hidden heap[*message]
}

func (s *standardOrder) put(m *message, now int64) {
	m.ready = m.visibleAt <= now
	if m.ready {
		m.rank = s.rank(m)
		s.ready.push(m)

		return
	}

	m.rank = m.visibleAt
	s.hidden.push(m)
}

func (s *standardOrder) take(now int64, most int, take func(m *message) bool) {
	for len(s.hidden) > 0 && s.hidden.top().visibleAt <= now {
		m := s.hidden.top()
		s.hidden.remove(0)
		s.put(m, now)
	}

	for most > 0 && len(s.ready) > 0 {
		m := s.ready.top()
		s.ready.remove(0)

		if take(m) {
			s.put(m, now)

			most--
		}
	}
}

func (s *standardOrder) moved(m *message, now int64) {
	s.remove(m)
	s.put(m, now)
}

func (s *standardOrder) remove(m *message) {
	if m.ready {
		s.ready.remove(m.slot)
	} else {
		s.hidden.remove(m.slot)
	}
}

func (s *standardOrder) due() (at int64, ok bool) {
	switch {
	case len(s.ready) > 0:
		return s.ready.top().visibleAt, true
	case len(s.hidden) > 0:
		return s.hidden.top().visibleAt, true
	default:
		return 0, false
	}
}
