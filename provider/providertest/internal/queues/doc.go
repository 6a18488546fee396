// Package queues tests the queues of a hub: records, locks, crash markers and timers.
package queues
