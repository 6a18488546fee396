//go:build perdure_quick

package admin

import "time"

// purgeCooldown is for tests on a local cloud, whose SQS deletes at once. No release is built with this tag.
const purgeCooldown = time.Second
