// Package turns tests commits, reads and redispatches of turns.
package turns
