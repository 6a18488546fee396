package sqsrecord_test

import (
	"testing"

	"github.com/perdure/perdure/internal/sqsrecord"
)

// FuzzDecode checks that a message with any attributes becomes a record with its ID and body, and that only a record of
// a FIFO queue has a group.
func FuzzDecode(f *testing.F) {
	f.Add("m-1", "handle", `{"v":1}`, "3", "1767355200000", "18849496460467696128", "order-7")
	f.Add("", "", "", "-1", "-9223372036854775808", "", "group")
	f.Add("", "", "\xff", "many", "soon", "x", "")
	f.Fuzz(func(t *testing.T, id, lock, body, receives, sentAt, sequence, group string) {
		r := sqsrecord.Decode(id, lock, body, map[string]string{
			"ApproximateReceiveCount": receives, "SentTimestamp": sentAt, "SequenceNumber": sequence,
			"MessageGroupId": group,
		})
		wantGroup := group
		if sequence == "" {
			wantGroup = ""
		}
		if r.ID != id || r.ReceiptHandle != lock || r.Body != body || r.Sequence != sequence || r.Group != wantGroup {
			t.Errorf("%+v", r)
		}
		if r.ReceiveCount < 1 {
			t.Errorf("%q: receive count %d, a received record has at least 1", receives, r.ReceiveCount)
		}
	})
}
