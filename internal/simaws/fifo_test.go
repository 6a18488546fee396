package simaws_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/simaws"
)

func newInbox(tb testing.TB) *desk {
	tb.Helper()

	return newDesk(tb, "inbox.fifo", simaws.QueueConfig{VisibilityTimeout: 10 * time.Second})
}

func TestFIFOQueue_messageIsInFlight_blocksItsGroup(t *testing.T) {
	t.Parallel()

	d := newInbox(t)
	for _, body := range []string{"a1", "a2", "a3"} {
		d.sendTo("a", body)
	}

	d.sendTo("b", "b1")

	a1 := d.wantOf(1, "a1")[0]
	d.want("b1")
	d.want()
	wantCode(t, d.remove(a1), "")

	rest := d.want("a2", "a3")
	d.sendTo("a", "a4")
	wantCode(t, d.setVisibility(rest[0], 0), "")
	d.want() // a3 is still in flight
	wantCode(t, d.setVisibility(rest[1], 0), "")
	d.want("a2", "a3", "a4")
	d.add(10 * time.Second)
	d.want("a2", "a3", "a4", "b1") // visible at the same time, so in order of arrival
}

func TestFIFOQueue_batch_isFilledFromOneGroupFirst(t *testing.T) {
	t.Parallel()

	d := newInbox(t)
	for i := range 3 {
		for _, group := range []string{"a", "b"} {
			d.sendTo(group, group+strconv.Itoa(i))
		}
	}

	d.wantOf(4, "a0", "a1", "a2", "b0")
	d.want()
}

func TestFIFOQueue_expiredReceipt_isRejected(t *testing.T) {
	t.Parallel()

	d := newInbox(t)
	d.sendTo("a", "a1")

	m := d.want("a1")[0]
	d.add(10 * time.Second)
	wantCode(t, d.remove(m), "InvalidParameterValue")
	wantCode(t, d.setVisibility(m, 1), "AWS.SimpleQueueService.MessageNotInflight")

	again := d.want("a1")[0]
	wantCode(t, d.remove(m), "InvalidParameterValue")
	wantCode(t, d.remove(again), "")
	wantCode(t, d.remove(again), "")
	d.add(time.Hour)
	d.want()
}

func TestFIFOQueue_repeatedDeduplicationID_isDroppedForFiveMinutes(t *testing.T) {
	t.Parallel()

	for _, perGroup := range []bool{false, true} {
		t.Run(fmt.Sprintf("per group %v", perGroup), func(t *testing.T) {
			t.Parallel()

			d := newDesk(t, "inbox.fifo", simaws.QueueConfig{PerGroupDeduplication: perGroup})
			first := d.sendTo("a", "x")
			wantCode(t, d.remove(d.want("x")[0]), "")

			second := d.sendTo("a", "x")
			if *second.MessageId != *first.MessageId || *second.SequenceNumber != *first.SequenceNumber {
				t.Errorf("repeated: %v %v", *second.MessageId, *second.SequenceNumber)
			}

			d.want()
			d.sendTo("b", "x")

			if perGroup {
				d.want("x")
			} else {
				d.want()
			}

			d.add(5*time.Minute - 1)
			d.sendTo("a", "x")
			d.sendTo("c", "y")
			d.add(1)
			d.sendTo("a", "x")

			if perGroup {
				d.want("x", "y", "x") // the message of group b was not deleted
			} else {
				d.want("y", "x")
			}
		})
	}
}

func TestFIFOQueue_sequenceNumbers_increase(t *testing.T) {
	t.Parallel()

	d := newInbox(t)
	last := ""

	for i := range 12 {
		sequence := *d.sendTo("a", strconv.Itoa(i)).SequenceNumber
		if len(sequence) != 20 || sequence <= last {
			t.Fatalf("%q after %q", sequence, last)
		}

		last = sequence
	}

	m := d.wantOf(1, "0")[0]
	want := map[string]string{
		"MessageGroupId": "a", "MessageDeduplicationId": "0", "SequenceNumber": "18800000000000000001",
	}

	for name, value := range want {
		if m.Attributes[name] != value {
			t.Errorf("%s is %q, want %q", name, m.Attributes[name], value)
		}
	}
}

func TestFIFOQueue_longGroup_isDeliveredInOrder(t *testing.T) {
	t.Parallel()

	const messages = 500

	d := newInbox(t)
	for i := range messages {
		d.sendTo("a", fmt.Sprintf("%03d", i))
	}

	next := 0
	for next < messages {
		for i, m := range d.receive(10) {
			if want := fmt.Sprintf("%03d", next); *m.Body != want {
				t.Fatalf("%s, want %s", *m.Body, want)
			}

			if i == 7 {
				break // the others are redelivered
			}

			wantCode(t, d.remove(m), "")

			next++
		}

		d.add(10 * time.Second)
	}
}
