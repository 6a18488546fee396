// Package rules defines the rules of the linter.
package rules

// Rule is one kind of mistake.
type Rule struct {
	ID string
	// Finds describes the mistake for the documentation. Why describes its consequence, and Instead describes the fix.
	Finds, Why, Instead string
	// Misses lists mistakes that the rule does not find, and harmless code that it reports.
	Misses string
	// Warning marks a rule that also reports correct code.
	Warning bool
	// Foreign also applies the rule to the code of other modules.
	Foreign bool
}

// missesOtherModules is the text of Misses for rules that read the source of one module.
const missesOtherModules = "Other modules."

// Rules about code that is not deterministic.
var (
	Clock = &Rule{
		ID: "clock", Foreign: true,
		Finds:   "Wall clock and sleeps: `time.Now`, `time.Since`, `time.Sleep`, `time.After`, timers and tickers.",
		Why:     "the clock returns a different time at each replay",
		Instead: "use ctx.Now()",
		Misses:  "Clocks in struct fields, and behind interfaces.",
	}
	Random = &Rule{
		ID: "random", Foreign: true,
		Finds: "Random numbers and IDs: `math/rand`, `math/rand/v2`, `crypto/rand`, key generation, " +
			"`hash/maphash`, ID libraries. A source with your own seed is allowed.",
		Why:     "it differs at each replay",
		Instead: "use ctx.Rand(), ctx.NewUUID(), or perdure.SideEffect",
		Misses:  "Seeds that differ, unless they are findings; addresses (`%p`).",
	}
	Environment = &Rule{
		ID: "environment", Foreign: true,
		Finds:   "Environment variables, host name, process ID, working directory, time zone, number of processors.",
		Why:     "it differs between processes that replay the instance",
		Instead: "pass it as input, or read it with perdure.SideEffect",
		Misses:  "Flag values; configuration in struct fields.",
	}
	Goroutine = &Rule{
		ID:      "goroutine",
		Finds:   "`go` statements, and functions that start goroutines (`errgroup`, `WaitGroup.Go`, `time.AfterFunc`).",
		Why:     "the engine cannot replay goroutines, and their order differs at each replay",
		Instead: "use perdure.Go or perdure.Async",
		Misses:  "Goroutines of libraries.",
	}
	Channel = &Rule{
		ID:      "channel",
		Finds:   "Channel operations: send, receive, range and close.",
		Why:     "a channel operation blocks the process and is not in the history",
		Instead: "wait for futures; coroutines can share variables",
		Misses:  missesOtherModules,
	}
	Select = &Rule{
		ID:      "select",
		Finds:   "`select` statements.",
		Why:     "select chooses randomly between cases that are ready",
		Instead: "use perdure.Select or perdure.WhenAny with futures",
		Misses:  missesOtherModules,
	}
	Sync = &Rule{
		ID: "sync",
		Finds: "Locks, condition variables, wait groups, `sync.Map`, atomics. `sync.Pool`, `sync.Once` and " +
			"similar are allowed, but the functions that they call are checked.",
		Why:     "it waits for or shares memory with code that is not replayed",
		Instead: "wait for futures; coroutines need no locks",
		Misses:  missesOtherModules,
	}
	IO = &Rule{
		ID: "io", Foreign: true,
		Finds:   "Files, network, processes, databases, the AWS SDK, standard output, and perdure's own client.",
		Why:     "it runs again at each replay, and its result differs",
		Instead: "do it in an activity",
		Misses:  "Readers and writers behind interfaces.",
	}
	Log = &Rule{
		ID: "log",
		Finds: "Loggers other than the context's: package `log`, the default logger of `log/slog`, zap, logrus, " +
			"zerolog.",
		Why:     "it writes the line again at each replay",
		Instead: "use ctx.Logger()",
		Misses:  "Loggers in your own variables: a `*slog.Logger` may be the context's.",
	}
	MapOrder = &Rule{
		ID: "maporder",
		Finds: "A range over a map, or over an iterator of package `maps`, whose body:\n\n" +
			"- calls perdure, even through a method with the context in its struct\n" +
			"- appends to or fills a slice that is not sorted afterwards\n" +
			"- writes text\n" +
			"- returns or keeps the current element when it stops\n" +
			"- keeps the last element in a variable that is read later\n\n" +
			"Unsorted slices of a map's keys or values. Loops that sum, count, fill a map or search are allowed, " +
			"and loops after a comparison of the map's `len` with 1.",
		Why:     "map order differs at each replay",
		Instead: "range over slices.Sorted(maps.Keys(m))",
		Misses: "Sums of floats; ties in a search or sort by values of the map; the last element that meets a " +
			"condition; your own iterators and sort functions; iterators of `reflect`.",
	}
	Globals = &Rule{
		ID:      "globals",
		Finds:   "Writes to a package variable.",
		Why:     "it is shared with other instances and written again at each replay",
		Instead: "use local variables, or pass it in inputs and results",
		Misses:  "Writes through pointers and methods; variables of the function that registers a literal.",
	}
	GlobalRead = &Rule{
		ID: "globalread", Warning: true,
		Finds:   "Reads of a package variable that code other than `init`, `main` and tests writes.",
		Why:     "it may have another value at a replay",
		Instead: "pass it as input, or read it with perdure.SideEffect",
		Misses:  "Writes in other packages, or through pointers and methods.",
	}
	Context = &Rule{
		ID:    "context",
		Finds: "Creating, querying and passing a `context.Context`.",
		Why: "orchestrations are not cancelled by a context.Context, and functions that take one wait outside the " +
			"history",
		Instead: "call an activity; for scopes use perdure.WithCancel and perdure.WithTimeout",
		Misses:  "Contexts in structs.",
	}
)

// Rules about calls of package perdure.
var (
	Scope = &Rule{
		ID: "scope",
		Finds: "The context of the enclosing function in a function of `Go`, `Async` or `Compensate`, and any " +
			"context in a function of `SideEffect`. Scopes that were created for the function are allowed.",
		Why:     "its calls belong to another scope and are cancelled with that scope",
		Instead: "use the function's context parameter",
		Misses:  "Contexts in struct fields and other variables.",
	}
	Unawaited = &Rule{
		ID: "unawaited", Warning: true,
		Finds: "Futures that are not used, are assigned to `_`, or are stored in a local variable, slice, array " +
			"or map that is never read. Futures of `RaiseEvent`, `CallUpdate` and `CallEntity` are allowed, " +
			"because the engine sends their message anyway.",
		Why:     "pending calls are cancelled when the orchestration ends, and their errors are lost",
		Instead: "await it, or use perdure.StartOrchestration for work that outlives its caller",
		Misses:  "Futures in fields; futures with other reads, such as `IsDone`.",
	}
	Unidentified = &Rule{
		ID: "unidentified",
		Finds: "`CallActivity` and `CallSubOrchestration` with a literal or an interface's method, which the " +
			"engine cannot identify.",
		Why:     "the engine looks up the name of the registered function, and the turn fails without one",
		Instead: "use DefineActivity, or call by name",
		Misses:  "Functions that are registered under several names, or not at all.",
	}
	ContinueAsNew = &Rule{
		ID:      "continueasnew",
		Finds:   "`ContinueAsNew` whose error is dropped.",
		Why:     "the instance continues as new only if the orchestration returns this error",
		Instead: "return perdure.ContinueAsNew[Out](ctx, in)",
		Misses:  "Stored errors that are not returned; inputs of another type.",
	}
	Change = &Rule{
		ID:      "change",
		Finds:   "`Version` with a change name that is not a constant, or with an empty range of constant versions.",
		Why:     "the version of a change is recorded under its name; without a valid version the instance is blocked",
		Instead: `write perdure.Version(ctx, "change name", perdure.DefaultVersion, 1)`,
		Misses: "Names in variables; one name for two changes; moved calls; old code that was removed too early. " +
			"Replay histories to find these.",
	}
	Query = &Rule{
		ID: "query",
		Finds: "Handlers in `SetQueryHandler` and validators in `WithValidator` that schedule, wait, set a status " +
			"or a handler, or use a side effect.",
		Why:     "handlers and validators must only read: the query fails, or the update is rejected",
		Instead: "read variables of the orchestration; to change something, use an event or an update",
		Misses:  "Calls in functions that the literal calls; cancelled futures; functions that are not literals.",
	}
	Endless = &Rule{
		ID: "endless",
		Finds: "Loops without a condition, or with a constant condition, that call perdure in each iteration and " +
			"end only with an error, in a function without `ContinueAsNew`. Loops that no error ends, and that " +
			"therefore continue after a cancellation.",
		Why:     "the history grows without limit",
		Instead: "continue as new from time to time: return perdure.ContinueAsNew[Out](ctx, in)",
		Misses:  "Conditions that are always true; loops that end after many iterations or with one kind of error.",
	}
	Replaying = &Rule{
		ID:      "replaying",
		Finds:   "An `if` on `ctx.IsReplaying()` whose body calls perdure or returns.",
		Why:     "the replay makes other decisions than the history",
		Instead: "do not depend on it; ctx.Logger() is already silent during a replay",
		Misses:  "Decisions on variables that store the result.",
	}
)

// Compensation is the rule about deferred functions.
var Compensation = &Rule{
	ID: "compensation",
	Finds: "`Compensate` that is not deferred directly, or gets the address of a variable that is not " +
		"returned. Calls in deferred functions whose context may be cancelled, even a context in a struct: such " +
		"calls do nothing after a cancellation.",
	Why: "the compensation does not run when it is needed",
	Instead: "defer perdure.Compensate(ctx, &err, undo) with the named result err, or use perdure.WithoutCancel(ctx) " +
		"in the defer",
	Misses: "Waits more than one function away from the defer; errors behind pointers; methods and contexts of " +
		"other packages; `WithoutCancel` contexts in fields and parameters.",
}

// Payload is the rule about types that JSON loses.
var Payload = &Rule{
	ID: "payload",
	Finds: "Types that JSON loses or cannot encode: unexported fields, channels, functions, complex numbers, " +
		"interfaces with methods, maps with struct keys, and map values whose `MarshalJSON` or " +
		"`MarshalText` has a pointer receiver. The rule checks all payloads, error details and results of " +
		"`SideEffect`, even in clients.",
	Why:     "payloads are encoded as JSON",
	Instead: `export the field, exclude it with json:"-", or implement MarshalJSON and UnmarshalJSON`,
	Misses:  "Values behind `any` and other interfaces; types with their own marshaling; custom statuses.",
}

// Rules about names of activities, orchestrations, entities and updates.
var (
	Unregistered = &Rule{
		ID: "unregistered", Warning: true,
		Finds: "Activities, orchestrations, entities, operations and updates that the program calls but does not " +
			"register. `DefineActivity` alone does not register. The finding is at the call of " +
			"`lambdahandler.StartOrchestrator` and suggests a similar name.",
		Why: "a turn fails if a called function is not registered, and an activity waits until a worker has its " +
			"name",
		Instead: "register it; if another program registers it, ignore the finding at the call or at DefineActivity",
		Misses: "Names and functions outside the registering call; references in fields and parameters; " +
			"activities with `OnQueue`; orchestrations that a client starts; updates of other orchestrations.",
	}
	Misfit = &Rule{
		ID: "misfit",
		Finds: "Calls by name whose input or result has another JSON type than the registered type: string, number, " +
			"boolean, list or object.",
		Why:     "payloads are JSON, and this one cannot be decoded",
		Instead: "use the registered types, or share the name and its types with perdure.DefineActivity",
		Misses:  "Fields of objects; elements of lists; types with their own marshaling; values behind `any`.",
	}
)

// Ignore is the rule about directives that ignore other rules.
var Ignore = &Rule{
	ID:      "ignore",
	Finds:   "`//perdure:ignore` without a reason, with an unknown rule, or without a finding.",
	Why:     "a reader must know which rule is ignored and why",
	Instead: "write //perdure:ignore RULE REASON on the line, above it, or above the function",
	Misses:  "Meaningless reasons.",
}

// All returns all rules in the order of docs/reference/linter.md.
func All() []*Rule {
	return []*Rule{
		Clock, Random, Environment, Goroutine, Channel, Select, Sync, IO, Log, MapOrder, Globals, GlobalRead, Context,
		Scope, Compensation, Unawaited, Unidentified, ContinueAsNew, Change, Query, Endless, Replaying, Payload,
		Misfit, Unregistered, Ignore,
	}
}

// ByID returns the rule with an ID, or nil.
func ByID(id string) *Rule {
	for _, r := range All() {
		if r.ID == id {
			return r
		}
	}
	return nil
}
