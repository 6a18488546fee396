//go:build !perdure_quick

package client

import "github.com/perdure/perdure/provider"

// quietTime is how long nothing must be sent after queues were emptied.
const quietTime = provider.QueuePurgeCooldown
