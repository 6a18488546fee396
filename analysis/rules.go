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
		finds: "The wall clock and waits for it: `time.Now`, `time.Since`, `time.Sleep`, `time.After`, timers " +
			"and tickers.",
		why:     "the time differs in each replay",
		instead: "use ctx.Now()",
		misses:  "Clocks behind an interface with several implementations, and clocks in struct fields.",
	}
	random = &rule{
		id: "random", foreign: true,
		finds: "Random numbers and IDs: `math/rand`, `math/rand/v2`, `crypto/rand`, new keys, `hash/maphash`, " +
			"and ID libraries such as google/uuid. A source with your own seed is allowed.",
		why:     "the value differs in each replay",
		instead: "use ctx.Rand(), ctx.NewUUID(), or perdure.SideEffect",
		misses:  "Seeds that differ, unless the seed itself is reported; `%p` and other addresses.",
	}
	environment = &rule{
		id: "environment", foreign: true,
		finds: "Values that differ between processes: environment variables, host name, process ID, working " +
			"directory, time zone, number of CPUs.",
		why:     "the value differs between the processes that replay the instance",
		instead: "pass it as input, or read it with perdure.SideEffect",
		misses:  "Flag values, and configuration that was stored in struct fields earlier.",
	}
	goroutine = &rule{
		id: "goroutine",
		finds: "`go` statements, and functions that start goroutines (`errgroup`, `WaitGroup.Go`, " +
			"`time.AfterFunc`).",
		why:     "the engine does not know goroutines, and their order differs in each replay",
		instead: "use perdure.Go or perdure.Async",
		misses:  "Goroutines that a library starts.",
	}
	channel = &rule{
		id:      "channel",
		finds:   "Sending to, receiving from, ranging over or closing a channel.",
		why:     "waiting for a channel blocks the worker and is not recorded in the history",
		instead: "wait for futures; coroutines take turns and can share variables",
		misses:  "Channels in other modules.",
	}
	selecting = &rule{
		id:      "select",
		finds:   "`select` statements.",
		why:     "select chooses randomly if several cases are ready",
		instead: "use perdure.Select or perdure.WhenAny with futures",
		misses:  "`select` in other modules.",
	}
	syncing = &rule{
		id: "sync",
		finds: "Locks, condition variables, wait groups, `sync.Map` and atomics. `sync.Once`, similar functions " +
			"and `sync.Pool` are allowed; functions passed to them are checked.",
		why:     "it waits for, or shares memory with, code that is not replayed",
		instead: "coroutines take turns and need no locks; wait for futures",
		misses:  "Locks in other modules.",
	}
	inputOutput = &rule{
		id: "io", foreign: true,
		finds:   "Files, network, processes, databases, the AWS SDK, standard output, and perdure's client.",
		why:     "it is repeated in each replay with a different result",
		instead: "do it in an activity",
		misses: "Readers and writers behind an interface, and unlisted libraries that use I/O through an " +
			"interface.",
	}
	logging = &rule{
		id: "log",
		finds: "Loggers other than the context's: package `log`, the default logger of `log/slog`, zap, logrus, " +
			"zerolog.",
		why:     "each line is logged again in each replay",
		instead: "use ctx.Logger()",
		misses:  "Loggers in your own variables: a *slog.Logger may come from the context.",
	}
	mapOrder = &rule{
		id: "maporder",
		finds: "A range over a map, or an iterator of package `maps`, whose order affects decisions: its body " +
			"calls perdure (also through a method whose struct has the context), fills a slice that is not " +
			"sorted later, writes text, returns or keeps the current element, or leaves the last element in a " +
			"variable that is read later. Also unsorted slices of a map's keys or values. Sums, counts, " +
			"filling a map, searching for any element, and maps whose `len` is compared with one are allowed.",
		why:     "the order of a map differs in each replay",
		instead: "range over slices.Sorted(maps.Keys(m))",
		misses: "Sums of floats; ties when you search for a maximum or sort by part of a value; the last element " +
			"that meets a condition; your own iterators and those of `reflect`; your own sort functions, " +
			"unless they sort with package `sort` or `slices`.",
	}
	globals = &rule{
		id:      "globals",
		finds:   "Writing a package variable.",
		why:     "it is shared with other instances and written again in each replay",
		instead: "use local variables, inputs and results",
		misses: "Writes through pointers and methods, and variables of the function that registers a function " +
			"literal.",
	}
	globalRead = &rule{
		id: "globalread", warning: true,
		finds:   "Reading a package variable that is written outside `init`, `main` and tests.",
		why:     "its value may differ in a replay",
		instead: "pass it as input, or read it with perdure.SideEffect",
		misses:  "Variables that another package writes, or that are written through pointers and methods.",
	}
	contexts = &rule{
		id:    "context",
		finds: "Creating, querying or passing on a `context.Context` in orchestration code.",
		why: "a context.Context does not end an orchestration, and a function that takes one waits for " +
			"something that is not in the history",
		instead: "call an activity; create scopes with perdure.WithCancel and perdure.WithTimeout",
		misses:  "Contexts in structs that are passed on.",
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
