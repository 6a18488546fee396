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
	// foreign: an effect that counts inside of modules of others as well. What they lock or start on their own is
	// theirs.
	foreign bool
}

// The rules.
// missesOtherModules is the gap of rules that read the source of one module.
const missesOtherModules = "Other modules."

var (
	clock = &rule{
		id: "clock", foreign: true,
		finds:   "Wall clock and sleeps: `time.Now`, `time.Since`, `time.Sleep`, `time.After`, timers and tickers.",
		why:     "the clock returns a different time at each replay",
		instead: "use ctx.Now()",
		misses:  "Clocks in struct fields, and behind interfaces.",
	}
	random = &rule{
		id: "random", foreign: true,
		finds: "Random numbers and IDs: `math/rand`, `math/rand/v2`, `crypto/rand`, key generation, " +
			"`hash/maphash`, ID libraries. A source with your own seed is allowed.",
		why:     "it differs at each replay",
		instead: "use ctx.Rand(), ctx.NewUUID(), or perdure.SideEffect",
		misses:  "Seeds that differ, unless they are findings; addresses (`%p`).",
	}
	environment = &rule{
		id: "environment", foreign: true,
		finds:   "Environment variables, host name, process ID, working directory, time zone, number of processors.",
		why:     "it differs between processes that replay the instance",
		instead: "pass it as input, or read it with perdure.SideEffect",
		misses:  "Flag values; configuration in struct fields.",
	}
	goroutine = &rule{
		id:      "goroutine",
		finds:   "`go` statements, and functions that start goroutines (`errgroup`, `WaitGroup.Go`, `time.AfterFunc`).",
		why:     "the engine cannot replay goroutines, and their order differs at each replay",
		instead: "use perdure.Go or perdure.Async",
		misses:  "Goroutines of libraries.",
	}
	channel = &rule{
		id:      "channel",
		finds:   "Channel operations: send, receive, range and close.",
		why:     "a channel operation blocks the process and is not in the history",
		instead: "wait for futures; coroutines can share variables",
		misses:  missesOtherModules,
	}
	selecting = &rule{
		id:      "select",
		finds:   "`select` statements.",
		why:     "select chooses randomly between cases that are ready",
		instead: "use perdure.Select or perdure.WhenAny with futures",
		misses:  missesOtherModules,
	}
	syncing = &rule{
		id: "sync",
		finds: "Locks, condition variables, wait groups, `sync.Map`, atomics. `sync.Pool`, `sync.Once` and " +
			"similar are allowed, but the functions that they call are checked.",
		why:     "it waits for or shares memory with code that is not replayed",
		instead: "wait for futures; coroutines need no locks",
		misses:  missesOtherModules,
	}
	inputOutput = &rule{
		id: "io", foreign: true,
		finds:   "Files, network, processes, databases, the AWS SDK, standard output, and perdure's own client.",
		why:     "it runs again at each replay, and its result differs",
		instead: "do it in an activity",
		misses:  "Readers and writers behind interfaces.",
	}
	logging = &rule{
		id: "log",
		finds: "Loggers other than the context's: package `log`, the default logger of `log/slog`, zap, logrus, " +
			"zerolog.",
		why:     "it writes the line again at each replay",
		instead: "use ctx.Logger()",
		misses:  "Loggers in your own variables: a `*slog.Logger` may be the context's.",
	}
	mapOrder = &rule{
		id: "maporder",
		finds: "A range over a map, or over an iterator of package `maps`, whose body:\n\n" +
			"- calls perdure, even through a method with the context in its struct\n" +
			"- appends to or fills a slice that is not sorted afterwards\n" +
			"- writes text\n" +
			"- returns or keeps the current element when it stops\n" +
			"- keeps the last element in a variable that is read later\n\n" +
			"Unsorted slices of a map's keys or values. Loops that sum, count, fill a map or search are allowed, " +
			"and loops after a comparison of the map's `len` with 1.",
		why:     "map order differs at each replay",
		instead: "range over slices.Sorted(maps.Keys(m))",
		misses: "Sums of floats; ties in a search or sort by values of the map; the last element that meets a " +
			"condition; your own iterators and sort functions; iterators of `reflect`.",
	}
	globals = &rule{
		id:      "globals",
		finds:   "Writes to a package variable.",
		why:     "it is shared with other instances and written again at each replay",
		instead: "use local variables, or pass it in inputs and results",
		misses:  "Writes through pointers and methods; variables of the function that registers a literal.",
	}
	globalRead = &rule{
		id: "globalread", warning: true,
		finds:   "Reads of a package variable that code other than `init`, `main` and tests writes.",
		why:     "it may have another value at a replay",
		instead: "pass it as input, or read it with perdure.SideEffect",
		misses:  "Writes in other packages, or through pointers and methods.",
	}
	contexts = &rule{
		id:    "context",
		finds: "Creating, querying and passing a `context.Context`.",
		why: "orchestrations are not cancelled by a context.Context, and functions that take one wait outside the " +
			"history",
		instead: "call an activity; for scopes use perdure.WithCancel and perdure.WithTimeout",
		misses:  "Contexts in structs.",
	}
)

// rules lists them all, as docs/reference/linter.md does.
func rules() []*rule {
	return []*rule{
		clock, random, environment, goroutine, channel, selecting, syncing, inputOutput, logging, mapOrder, globals,
		globalRead, contexts,
		scope, compensation, unawaited, unidentified, continuing, changing, answering, endless, replaying, payloads,
		misfit, unregistered,
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
