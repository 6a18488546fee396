package instances

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Instances that are blocked at the same time are spread over the partitions, because a partition accepts only a
// thousand writes per second.
func TestBlockedInstances_tenThousandAtOnce_areSpread(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for n := range 10_000 {
		count[BlockedPartition(fmt.Sprint("order-", n))]++
	}
	for _, partition := range Partitions(table.AttentionBlocked) {
		if c := count[partition]; c < 500 || c > 750 {
			t.Errorf("partition %s has %d instances", partition, c)
		}
	}
	if len(count) != table.Shards {
		t.Errorf("%d partitions", len(count))
	}
}
