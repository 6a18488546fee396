package dynamo_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"
)

// Queries hide random parts of the cancel record, which become visible in random order, and the clock of the reader
// jumps. A reader that continues with the result next of each read receives every cancel, and no cancel that no turn
// has made.
func TestReadCancels_anyOrderOfVisibility_everyCancelIsReturned(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		hidden := map[string]bool{}
		b := newBench(t, func(out *dynamodb.QueryOutput) {
			out.Items = slices.DeleteFunc(out.Items, func(it map[string]types.AttributeValue) bool {
				return hidden[sortKey(it)]
			})
		})
		from := int64(rapid.IntRange(0, 5).Draw(r, "from"))
		received, decided := map[int64]bool{}, map[int64]int64{} // decided has the segment of each cancelled activity
		read := func() {
			got, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, from)
			if err != nil || next < from {
				r.Fatalf("next %d after %d, %v", next, from, err)
			}
			from = next
			for i := range got {
				id := got[i].IDs[0].First
				if decided[id] == 0 {
					r.Fatalf("read a cancel of activity %d, which is not cancelled", id)
				}
				received[id] = true
			}
		}
		first := from
		for id := range int64(rapid.IntRange(1, 140).Draw(r, "turns")) {
			if rapid.IntRange(0, 9).Draw(r, "nothing") == 0 {
				b.commit(b.turn(0, ""))
				continue
			}
			b.commit(b.turn(id+1, "r"))
			decided[id+1] = b.head.Segment
			switch rapid.IntRange(0, 5).Draw(r, "then") {
			case 0:
				hidden[fmt.Sprintf("b#%010d", b.head.Segment)] = true
			case 4:
				for _, sk := range slices.Sorted(maps.Keys(hidden)) {
					if rapid.Bool().Draw(r, "seen") {
						delete(hidden, sk)
					}
				}
			case 1, 2:
				read()
			case 3:
				b.now = b.now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(r, "minutes")) * time.Minute)
			}
		}
		read()
		clear(hidden)
		read()
		for id, segment := range decided {
			if segment >= first && !received[id] {
				r.Fatalf("the cancel of segment %d was not read", segment)
			}
		}
		end := first
		if b.lastCancel() > 0 {
			end = max(first, b.lastCancel()+1)
		}
		if read(); from != end {
			r.Fatalf("next segment %d, the last cancel is in segment %d", from, b.lastCancel())
		}
	})
}

// lastCancel returns the segment of the last turn that cancelled an activity.
func (b *bench) lastCancel() int64 { return b.block.Last }
