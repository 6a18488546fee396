package simaws

import (
	"hash/maphash"
	"slices"
)

// fifoOrder orders the messages of a FIFO queue: message groups by the time at which they become free, and the messages
// of a group by arrival.
type fifoOrder struct {
	groups map[string]*group
	order  heap[*group]
}

// group is a message group. Received messages come before the others, because a group delivers in order.
type group struct {
	name     string
	messages []*message
	free     int64 // the time at which no message is in flight
	slot     int
}

func (g *group) before(other *group) bool {
	if g.free != other.free {
		return g.free < other.free
	}

	return g.messages[0].id < other.messages[0].id
}

func (g *group) place(slot int) { g.slot = slot }

// settle sets the time at which the group becomes free: when the last of its received messages becomes visible.
func (g *group) settle() {
	g.free = g.messages[0].visibleAt

	for _, m := range g.messages {
		if m.receives == 0 {
			break
		}

		g.free = max(g.free, m.visibleAt)
	}
}

func (s *fifoOrder) put(m *message, _ int64) {
	g := s.groups[m.group]
	if g != nil {
		g.messages = append(g.messages, m)

		return
	}

	g = &group{name: m.group, messages: []*message{m}, free: m.visibleAt}
	s.groups[m.group] = g
	s.order.push(g)
}

// take offers as many messages of a group as possible before it continues with the next group, like SQS.
func (s *fifoOrder) take(now int64, most int, take func(m *message) bool) {
	for most > 0 && len(s.order) > 0 && s.order.top().free <= now {
		g := s.order.top()

		for i := 0; most > 0 && i < len(g.messages); {
			if take(g.messages[i]) {
				i++
				most--
			} else {
				g.drop(i)
			}
		}

		s.resettle(g)
	}
}

func (s *fifoOrder) moved(m *message, _ int64) { s.resettle(s.groups[m.group]) }

func (s *fifoOrder) remove(m *message) {
	g := s.groups[m.group]
	g.drop(slices.Index(g.messages, m))
	s.resettle(g)
}

// drop removes a message near the front. The cost does not depend on the number of later messages.
func (g *group) drop(i int) {
	copy(g.messages[1:i+1], g.messages[:i])
	g.messages[0] = nil
	g.messages = g.messages[1:]
}

// resettle moves a group to its position in the order after its messages have changed.
func (s *fifoOrder) resettle(g *group) {
	if len(g.messages) == 0 {
		s.order.remove(g.slot)
		delete(s.groups, g.name)

		return
	}

	g.settle()
	s.order.fix(g.slot)
}

func (s *fifoOrder) due() (at int64, ok bool) {
	if len(s.order) == 0 {
		return 0, false
	}

	return s.order.top().free, true
}

// deduplicator stores the deduplication IDs of the last five minutes, as hashes without pointers, because a busy queue
// has millions of IDs.
type deduplicator struct {
	seed  maphash.Seed
	first map[fingerprint]arrival
	aged  []fingerprint // in order of age
}

type fingerprint struct{ a, b uint64 }

// arrival is the first message with a deduplication ID, and the time until which repetitions are dropped.
type arrival struct {
	number uint64
	until  int64
}

// check returns the number of the first message with this ID. If there is none, it records this message as the first
// one.
func (d *deduplicator) check(scope, id string, number uint64, now int64) (first uint64, repeated bool) {
	if d.first == nil {
		d.first = map[fingerprint]arrival{}
	}

	for len(d.aged) > 0 && d.first[d.aged[0]].until <= now {
		delete(d.first, d.aged[0])
		d.aged = d.aged[1:]
	}

	mark := fingerprint{d.hash(scope, id), d.hash(id, scope)}
	if known, ok := d.first[mark]; ok {
		return known.number, true
	}

	d.first[mark] = arrival{number, now + int64(deduplication)}
	d.aged = append(d.aged, mark)

	return 0, false
}

func (d *deduplicator) hash(a, b string) uint64 {
	var h maphash.Hash

	h.SetSeed(d.seed)
	_, _ = h.WriteString(a) // never fails
	_ = h.WriteByte(0)
	_, _ = h.WriteString(b)

	return h.Sum64()
}
