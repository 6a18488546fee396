package instances

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Instances that are blocked or deleted at the same time are spread over the partitions, because a partition accepts
// only a thousand writes per second.
func TestPartitions_tenThousandInstancesAtOnce_areSpread(t *testing.T) {
	t.Parallel()
	for kind, partitionOf := range map[string]func(instanceID string) string{
		table.AttentionBlocked: BlockedPartition, table.AttentionDeleting: DeletingPartition,
	} {
		count := map[string]int{}
		for n := range 10_000 {
			count[partitionOf(fmt.Sprint("order-", n))]++
		}
		for _, partition := range Partitions(kind) {
			if c := count[partition]; c < 500 || c > 750 {
				t.Errorf("partition %s has %d instances", partition, c)
			}
		}
		if len(count) != table.Shards {
			t.Errorf("%s: %d partitions", kind, len(count))
		}
	}
}
