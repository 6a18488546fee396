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
		finds:   "The wall clock and its waits: `time.Now`, `time.Since`, `time.Sleep`, `time.After`, timers and tickers.",
		why:     "the clock shows another time at each replay",
		instead: "use ctx.Now()",
		misses:  "Clocks behind an interface of several implementations, and clocks in struct fields.",
	}
	random = &rule{
		id: "random", foreign: true,
		finds:   "Random numbers and ids: the functions of `math/rand`, `math/rand/v2` and `crypto/rand`, new keys, `hash/maphash`, and libraries of ids such as google/uuid. A source with a seed of your own is no mistake.",
		why:     "it is another at each replay",
		instead: "use ctx.Rand(), ctx.NewUUID(), or perdure.SideEffect",
		misses:  "A source that is seeded with something that differs, unless that is a finding itself; `%p` and other addresses.",
	}
	environment = &rule{
		id: "environment", foreign: true,
		finds:   "What differs between processes: environment variables, host name, process id, working directory, time zone, number of processors.",
		why:     "it differs between the processes that replay the instance",
		instead: "pass it in as input, or read it through perdure.SideEffect",
		misses:  "Values of flags, and configuration that was read into struct fields before.",
	}
	goroutine = &rule{
		id:      "goroutine",
		finds:   "`go` statements, and functions that start goroutines (`errgroup`, `WaitGroup.Go`, `time.AfterFunc`).",
		why:     "the engine does not see goroutines, and their order differs at each replay",
		instead: "use perdure.Go or perdure.Async",
		misses:  "Goroutines that a library starts on its own.",
	}
	channel = &rule{
		id:      "channel",
		finds:   "Sending to, receiving from, ranging over and closing a channel.",
		why:     "a wait for a channel holds the worker, and is not in history",
		instead: "wait for futures; a variable is enough between coroutines, which take turns",
		misses:  "Channels inside of other modules.",
	}
	selecting = &rule{
		id:      "select",
		finds:   "`select` statements.",
		why:     "of several cases that are ready, select takes a random one",
		instead: "use perdure.Select or perdure.WhenAny with futures",
		misses:  "Select inside of other modules.",
	}
	syncing = &rule{
		id:      "sync",
		finds:   "Locks, conditions, wait groups, `sync.Map` and atomics. `sync.Once` and its kin, and `sync.Pool`, are no mistakes; what they are given is looked at.",
		why:     "it waits for, or shares memory with, what is not replayed",
		instead: "coroutines take turns and need no locks; wait for futures",
		misses:  "Locks inside of other modules.",
	}
	inputOutput = &rule{
		id: "io", foreign: true,
		finds:   "Files, network, processes, databases, the AWS SDK, standard output, and perdure's own client.",
		why:     "it is done again at each replay, and its answer differs",
		instead: "do it in an activity",
		misses:  "Writers and readers behind an interface, and libraries that are not listed and reach I/O through one.",
	}
	logging = &rule{
		id:      "log",
		finds:   "Loggers other than the context's: package `log`, the default logger of `log/slog`, zap, logrus, zerolog.",
		why:     "each line is written again at each replay",
		instead: "use ctx.Logger()",
		misses:  "Loggers in variables of your own: a *slog.Logger may be the context's.",
	}
	mapOrder = &rule{
		id: "maporder",
		finds: "A range over a map, or an iterator of package maps, whose order decides something: its body calls into perdure, also by a method that has the context in its struct; appends to, or fills, a slice that is not sorted behind it; writes text; " +
			"returns or keeps what it is at when it stops; or leaves what came last in a variable that is read later. Slices that are made of a map's keys or values and not sorted. " +
			"One that sums, counts, fills a map or looks for anything is no mistake, nor is one where `len` of the map is compared with one.",
		why:     "the order of a map differs at each replay",
		instead: "range over slices.Sorted(maps.Keys(m))",
		misses:  "Sums of floats; ties when the largest is looked for, or when a sort compares the values of a map, or a part of them; the last of those that meet a condition; iterators of your own, and `reflect`'s; an order that is lost or kept in functions of your own that do not sort by a name of package sort or slices.",
	}
	globals = &rule{
		id:      "globals",
		finds:   "Writing a package's variable.",
		why:     "it is shared with other instances, and written again at each replay",
		instead: "keep it in local variables, or pass it on in inputs and results",
		misses:  "What is written through pointers and methods, and variables of the function that registers a literal.",
	}
	globalRead = &rule{
		id: "globalread", warning: true,
		finds:   "Reading a package's variable that code other than `init`, `main` and tests writes.",
		why:     "it may hold something else at a replay",
		instead: "pass it in as input, or read it through perdure.SideEffect",
		misses:  "Variables that another package writes, or that are written through pointers and methods.",
	}
	contexts = &rule{
		id:      "context",
		finds:   "`context.Context` in orchestration code: making one, asking one, and passing one on.",
		why:     "an orchestration is not ended by a context.Context, and what takes one waits for what is not in history",
		instead: "call an activity; scopes are perdure.WithCancel and perdure.WithTimeout",
		misses:  "Contexts inside of structs that are passed on.",
	}
)

// rules lists them all, as docs/linter.md does.
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
