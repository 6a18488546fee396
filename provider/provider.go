package provider

// Provider stores a task hub and transports its messages. It consists of Core, which every provider implements, and of
// optional interfaces.
//
// Each interface serves the consumer that its comment names. A provider that lacks an optional interface embeds the
// type that declines it, such as NoJobs. The methods then return an UnsupportedError that names the missing capability.
// A provider can also implement Poller, StartPreparer, PayloadStoreProvider, Querier, DeadLetters and Reconciler.
// Consumers look for these interfaces in its method set.
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

// Core is the part of a Provider that every provider implements. The code of an orchestration does not depend on the
// provider, so Core contains everything that code can use. The optional interfaces serve operators.
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
