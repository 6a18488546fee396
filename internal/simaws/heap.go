package simaws

// member is an element of a heap. It stores its slot, so that it can be removed or moved.
type member[T any] interface {
	before(other T) bool
	place(slot int)
}

// heap is a binary heap without the interface calls of container/heap.
type heap[T member[T]] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	x.place(len(*h) - 1)
	h.up(len(*h) - 1)
}

// top returns the first member. The heap must not be empty.
func (h heap[T]) top() T { return h[0] }

// remove removes the member in a slot.
func (h *heap[T]) remove(slot int) {
	var none T

	last := len(*h) - 1
	moved := (*h)[last]
	(*h)[last] = none
	*h = (*h)[:last]

	if slot != last {
		(*h)[slot] = moved
		moved.place(slot)
		h.fix(slot)
	}
}

// fix restores the order after the member in a slot has changed.
func (h heap[T]) fix(slot int) {
	if !h.down(slot) {
		h.up(slot)
	}
}

func (h heap[T]) up(slot int) {
	for slot > 0 {
		parent := (slot - 1) / 2 //nolint:mnd // a binary heap
		if !h[slot].before(h[parent]) {
			return
		}

		h.swap(slot, parent)
		slot = parent
	}
}

func (h heap[T]) down(slot int) bool {
	start := slot

	for {
		child := 2*slot + 1 //nolint:mnd // a binary heap
		if child >= len(h) {
			break
		}

		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}

		if !h[child].before(h[slot]) {
			break
		}

		h.swap(slot, child)
		slot = child
	}

	return slot != start
}

func (h heap[T]) swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].place(a)
	h[b].place(b)
}
