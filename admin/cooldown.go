//go:build !perdure_quick

package admin

import "github.com/perdure/perdure/provider"

// purgeCooldown is the time after a purge of the queues during which no messages may be sent.
const purgeCooldown = provider.QueuePurgeCooldown
