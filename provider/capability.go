package provider

import (
	"context"
	"errors"
	"iter"
)

// Capability is an optional feature of a hub. An UnsupportedError names it.
type Capability string

// The capabilities. The comments name the interface of each capability in parentheses.
const (
	// CapabilityAnnotations is the capability to add notes to instances (Annotations).
	CapabilityAnnotations Capability = "notes"
	// CapabilityBulkJobs is the capability to run bulk jobs (Jobs).
	CapabilityBulkJobs Capability = "bulk jobs"
	// CapabilityDeadLetterRecovery is the capability to recover dead letters automatically (DeadLetterRecovery).
	CapabilityDeadLetterRecovery Capability = "dead-letter recovery"
	// CapabilityDeadLetters is the capability to manage dead letters (DeadLetters).
	CapabilityDeadLetters Capability = "dead letters"
	// CapabilityMonitoring is the capability to find queues without workers and to count instances (Monitoring).
	CapabilityMonitoring Capability = "monitoring"
	// CapabilityPreparedStarts is the capability to start instances in a caller's transaction (StartPreparer).
	CapabilityPreparedStarts Capability = "starts in a transaction"
	// CapabilityQueries is the capability to query instances (Querier).
	CapabilityQueries Capability = "queries"
	// CapabilityReconcile is the capability to send lost messages again (Reconciler).
	CapabilityReconcile Capability = "reconcile"
	// CapabilityRetention is the capability to delete instances after their retention (Retentions).
	CapabilityRetention Capability = "retention"
	// CapabilitySchedules is the capability to list schedules (Schedules).
	CapabilitySchedules Capability = "schedules"
)

// UnsupportedError is returned for an operation that requires a capability that the hub does not have. errors.Is finds
// errors.ErrUnsupported in it. Errors for the same capability are equal.
type UnsupportedError struct {
	Capability Capability
}

// Error implements error.
func (e UnsupportedError) Error() string {
	if e.Capability == CapabilityQueries {
		return "hub has no orchestrator function to query"
	}
	return "hub does not support " + string(e.Capability)
}

// Is reports whether target is errors.ErrUnsupported.
func (UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// unsupported returns a sequence that yields only an UnsupportedError.
func unsupported[T any](c Capability) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, UnsupportedError{c})
	}
}

// NoDeadLetterRecovery is embedded by a Provider without DeadLetterRecovery.
type NoDeadLetterRecovery struct{}

// DeadLetteredRecords yields an UnsupportedError.
func (NoDeadLetterRecovery) DeadLetteredRecords(context.Context) iter.Seq2[DeadLetteredRecord, error] {
	return unsupported[DeadLetteredRecord](CapabilityDeadLetterRecovery)
}

// AnnotateDeadLetter returns an UnsupportedError.
func (NoDeadLetterRecovery) AnnotateDeadLetter(context.Context, DeadLetteredRecord, error) error {
	return UnsupportedError{CapabilityDeadLetterRecovery}
}

// NoJobs is embedded by a Provider without Jobs.
type NoJobs struct{}

// PutJob returns an UnsupportedError.
func (NoJobs) PutJob(context.Context, *Job) error { return UnsupportedError{CapabilityBulkJobs} }

// ReadJob returns an UnsupportedError.
func (NoJobs) ReadJob(context.Context, string) (Job, error) {
	return Job{}, UnsupportedError{CapabilityBulkJobs}
}

// ListJobs returns an UnsupportedError.
func (NoJobs) ListJobs(context.Context) ([]Job, error) {
	return nil, UnsupportedError{CapabilityBulkJobs}
}

// MatchInstances returns an UnsupportedError.
func (NoJobs) MatchInstances(context.Context, Filter, string, int) (found []Target, next string, err error) {
	return nil, "", UnsupportedError{CapabilityBulkJobs}
}

// NoMonitoring is embedded by a Provider without Monitoring.
type NoMonitoring struct{}

// ReportWorker does nothing, because no consumer can read the report.
func (NoMonitoring) ReportWorker(context.Context, WorkerReport) error { return nil }

// ReadWorkers returns an UnsupportedError.
func (NoMonitoring) ReadWorkers(context.Context) (map[string]WorkerReport, error) {
	return nil, UnsupportedError{CapabilityMonitoring}
}

// CountWorkItems returns an UnsupportedError.
func (NoMonitoring) CountWorkItems(context.Context) (map[string]int, error) {
	return nil, UnsupportedError{CapabilityMonitoring}
}

// CountAttention returns an UnsupportedError.
func (NoMonitoring) CountAttention(context.Context) (AttentionCounts, error) {
	return AttentionCounts{}, UnsupportedError{CapabilityMonitoring}
}

// NoRetentions is embedded by a Provider without Retentions.
type NoRetentions struct{}

// DueInstances yields an UnsupportedError.
func (NoRetentions) DueInstances(context.Context) iter.Seq2[string, error] {
	return unsupported[string](CapabilityRetention)
}

// ApplyRetention returns an UnsupportedError.
func (NoRetentions) ApplyRetention(context.Context, string) (RetentionResult, error) {
	return RetentionResult{}, UnsupportedError{CapabilityRetention}
}

// NoSchedules is embedded by a Provider without Schedules.
type NoSchedules struct{}

// PutScheduleEntry returns an UnsupportedError.
func (NoSchedules) PutScheduleEntry(context.Context, ScheduleEntry) error {
	return UnsupportedError{CapabilitySchedules}
}

// DeleteScheduleEntry returns an UnsupportedError.
func (NoSchedules) DeleteScheduleEntry(context.Context, ScheduleEntry) error {
	return UnsupportedError{CapabilitySchedules}
}

// ListSchedules yields an UnsupportedError.
func (NoSchedules) ListSchedules(context.Context, string) iter.Seq2[ScheduleEntry, error] {
	return unsupported[ScheduleEntry](CapabilitySchedules)
}
