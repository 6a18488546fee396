package provider

// Provider stores a task hub and transports its messages. It consists of Core, which every provider implements, and of
// optional interfaces.
//
// The comment of each interface names its callers. A provider that does not support an optional interface embeds a type
// such as NoJobs. Its methods return an UnsupportedError that names the missing capability. A provider can also
// implement Poller, StartPreparer, PayloadStoreProvider, Querier, DeadLetters and Reconciler. Callers use a type
// assertion to find these interfaces.
//
// All methods are safe for concurrent use and return early when ctx ends. A failed call returns an *Error that reports
// whether the call can be repeated, unless it returns a more specific sentinel error.
type Provider interface {
	Core

	Annotations
	DeadLetterRecovery
	Jobs
	Monitoring
	Retentions
	Schedules
}

// Core is the part of a Provider that every provider implements. It contains everything that the code of orchestrations
// depends on. The optional interfaces are for operators.
type Core interface {
	// Instances and Completions are for clients.
	Instances
	Completions
	// Orchestrations and Rejections are for turns.
	Orchestrations
	Rejections
	// WorkItems is for workers.
	WorkItems
	// Activities is for clients, turns and workers.
	Activities
	// Timers is for the function or process that receives timers. Sweeps is for its sweeper.
	Timers
	Sweeps
	// Records and CrashMarkers are for all receivers of records.
	Records
	CrashMarkers
}
