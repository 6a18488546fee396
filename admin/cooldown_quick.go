//go:build perdure_quick

package admin

import "time"

// purgeCooldown is short for tests on a local cloud, whose SQS purges queues immediately. Releases are built without
// this tag.
const purgeCooldown = time.Second
