package analysis

// rule is one kind of mistake.
type rule struct {
	id string
	// finds is what is reported, why what is wrong with it, instead what to write.
	finds, why, instead string
	// misses is what is not found, and what is reported though it does no harm.
	misses string
	// warning: the code may be right.
	warning bool
	// foreign: an effect that counts inside of modules of others as well. What they lock or start on their own is theirs.
	foreign bool
}

// The rules.
var (
	clock = &rule{
		id: "clock", foreign: true,
		finds:   "Wall clock and sleeps: `time.Now`, `time.Since`, `time.Sleep`, `time.After`, timers and tickers.",
		why:     "the clock returns a different time at each replay",
		instead: "use ctx.Now()",
		misses:  "Clocks behind an interface with several implementations, and clocks in struct fields.",
	}
	random = &rule{
		id: "random", foreign: true,
		finds: "Random numbers and IDs: the functions of `math/rand`, `math/rand/v2` and `crypto/rand`, key " +
			"generation, `hash/maphash`, and ID libraries such as google/uuid. A random source with your own seed is " +
			"allowed.",
		why:     "it differs at each replay",
		instead: "use ctx.Rand(), ctx.NewUUID(), or perdure.SideEffect",
		misses:  "A source whose seed differs, unless the seed itself is a finding; `%p` and other addresses.",
	}
	environment = &rule{
		id: "environment", foreign: true,
		finds: "Process environment: environment variables, host name, process ID, working directory, time zone, " +
			"number of processors.",
		why:     "it differs between processes that replay the instance",
		instead: "pass it as input, or read it with perdure.SideEffect",
		misses:  "Flag values, and configuration that was read into struct fields earlier.",
	}
	goroutine = &rule{
		id:      "goroutine",
		finds:   "`go` statements, and functions that start goroutines (`errgroup`, `WaitGroup.Go`, `time.AfterFunc`).",
		why:     "the engine cannot replay goroutines, and their order differs at each replay",
		instead: "use perdure.Go or perdure.Async",
		misses:  "Goroutines that a library starts internally.",
	}
	channel = &rule{
		id:      "channel",
		finds:   "Channel operations: send, receive, range and close.",
		why:     "a channel operation blocks the process and is not in the history",
		instead: "wait for futures; coroutines can share variables, because only one runs at a time",
		misses:  "Channels in other modules.",
	}
	selecting = &rule{
		id:      "select",
		finds:   "`select` statements.",
		why:     "select chooses randomly between cases that are ready",
		instead: "use perdure.Select or perdure.WhenAny with futures",
		misses:  "Select in other modules.",
	}
	syncing = &rule{
		id: "sync",
		finds: "Locks, condition variables, wait groups, `sync.Map` and atomics. `sync.Once`, `sync.OnceFunc` and " +
			"similar, and `sync.Pool` are allowed; the functions that they call are checked.",
		why:     "it waits for or shares memory with code that is not replayed",
		instead: "remove it: coroutines run one at a time and need no locks; wait for futures",
		misses:  "Locks in other modules.",
	}
	inputOutput = &rule{
		id: "io", foreign: true,
		finds:   "I/O: files, network, processes, databases, the AWS SDK, standard output, and perdure's own client.",
		why:     "it runs again at each replay, and its result differs",
		instead: "do it in an activity",
		misses:  "Writers and readers behind an interface, and unlisted libraries that do I/O through one.",
	}
	logging = &rule{
		id:      "log",
		finds:   "Loggers other than the context's: package `log`, the default logger of `log/slog`, zap, logrus, zerolog.",
		why:     "it writes the line again at each replay",
		instead: "use ctx.Logger()",
		misses:  "Loggers in your own variables: a *slog.Logger may be the context's.",
	}
	mapOrder = &rule{
		id: "maporder",
		finds: "A range over a map, or over an iterator of package maps, whose order matters. The body calls " +
			"perdure, also through a method with the context in its struct. Or it appends to or fills a slice that " +
			"is not sorted afterwards, or writes text. Or it returns or keeps the current element when it stops, or " +
			"keeps the last element in a variable that is read later. Slices of a map's keys or values that are not " +
			"sorted are findings too. A loop that sums, counts, fills a map or searches is allowed, and so is a loop " +
			"after a comparison of the map's `len` with 1.",
		why:     "map order differs at each replay",
		instead: "range over slices.Sorted(maps.Keys(m))",
		misses: "Sums of floats. Ties in a search for the largest element, or in a sort that compares values of the " +
			"map or parts of them. The last element that meets a condition. Your own iterators and those of " +
			"`reflect`. Sorting in your own functions without package sort or slices.",
	}
	globals = &rule{
		id:      "globals",
		finds:   "Writes to a package variable.",
		why:     "it is shared with other instances and written again at each replay",
		instead: "use local variables, or pass it in inputs and results",
		misses:  "Writes through pointers and methods, and variables of the function that registers a literal.",
	}
	globalRead = &rule{
		id: "globalread", warning: true,
		finds:   "Reads of a package variable that code other than `init`, `main` and tests writes.",
		why:     "it may have another value at a replay",
		instead: "pass it as input, or read it with perdure.SideEffect",
		misses:  "Variables that another package writes, or that are written through pointers and methods.",
	}
	contexts = &rule{
		id:    "context",
		finds: "`context.Context` in orchestration code: creating, querying and passing one.",
		why: "orchestrations are not cancelled by a context.Context, and functions that take one wait outside the " +
			"history",
		instead: "call an activity; for scopes use perdure.WithCancel and perdure.WithTimeout",
		misses:  "Contexts in structs that are passed.",
	}
)

// rules lists them all, as docs/reference/linter.md does.
func rules() []*rule {
	return []*rule{
		clock, random, environment, goroutine, channel, selecting, syncing, inputOutput, logging, mapOrder, globals, globalRead, contexts,
		scope, compensation, unawaited, unidentified, continuing, changing, answering, endless, replaying, payloads, misfit, unregistered,
		ignoring,
	}
}

// ruleOf finds a rule by its id; nil when there is none.
func ruleOf(id string) *rule {
	for _, r := range rules() {
		if r.id == id {
			return r
		}
	}
	return nil
}
