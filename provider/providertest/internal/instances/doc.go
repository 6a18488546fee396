// Package instances tests what a provider does for clients: lists, statuses and deletions.
package instances
