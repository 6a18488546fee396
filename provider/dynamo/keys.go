package dynamo

import (
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// groupID returns the message group of an instance. It is a digest because SQS allows 128 ASCII characters, and an
// instance ID can have 1,024 bytes of UTF-8 (R1).
func groupID(instanceID string) string { return table.Digest("group", instanceID) }

// fairGroup returns the message group of a fairness key, by which SQS's fair queues distinguish tenants.
func fairGroup(key string) string { return table.Digest("fair", key) }

// exclusiveGroup returns the message group of an exclusive key.
func exclusiveGroup(key string) string { return table.Digest("exclusive", key) }
