// Package instances tests the operations for clients: lists, statuses and deletions.
package instances
