// Package activities tests the operations for workers: work items, attempts, cancellations and activity
// records.
package activities
