// Package activities tests what a provider does for workers: work items, attempts, cancellations and activity
// records.
package activities
