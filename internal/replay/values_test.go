package replay_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func TestLogger_replayAndUnwinding_logsNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	opts := options
	opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
	code := body(func(c *replay.Context) {
		log := c.Logger().With("k", "v").WithGroup("g")
		defer log.Info("deferred")
		log.Info("first")
		c.Await(activity(c, "a"))
		log.Info("second")
		c.Await(activity(c, "b"))
	})
	log := record(t, code)
	x := replay.New(code, opts)
	if err := x.Replay(log); err != nil || out.Len() > 0 {
		t.Fatalf("during replay: got log %q, error %v", &out, err)
	}
	turn(t, x, done(3))
	x.Close()
	lines := strings.TrimSpace(out.String())
	if strings.Contains(lines, "\n") || !strings.Contains(lines, "msg=second") {
		t.Errorf("got log %q", lines)
	}
	for _, attr := range []string{"orchestration=o", "instance=order-17", "execution=01JEXECUTION", "k=v"} {
		if !strings.Contains(lines, attr) {
			t.Errorf("got log %[2]q, want %[1]s", attr, lines)
		}
	}
}

func TestRand_dependsOnTheExecution(t *testing.T) {
	t.Parallel()
	draw := func(executionID string, numbers int) (uuids []string, sum uint64) {
		x := replay.New(body(func(c *replay.Context) {
			for range numbers {
				sum += c.Rand().Uint64()
			}
			uuids = []string{c.NewUUID(), c.NewUUID()}
		}), replay.Options{InstanceID: "i", ExecutionID: executionID})
		t.Cleanup(func() { x.Close() })
		if err := x.Replay([]history.Event{started}); err != nil {
			t.Fatal(err)
		}
		turn(t, x)
		return uuids, sum
	}
	ids, sum := draw("x1", 3)
	again, sumAgain := draw("x1", 3)
	if !slices.Equal(ids, again) || sum != sumAgain {
		t.Errorf("got %v and %d, then %v and %d", ids, sum, again, sumAgain)
	}
	if fewer, _ := draw("x1", 1); !slices.Equal(ids, fewer) {
		t.Error("the UUIDs depend on the number of random numbers")
	}
	if other, otherSum := draw("x2", 3); slices.Equal(ids, other) || sum == otherSum {
		t.Error("another execution has the same random numbers")
	}
	if v4 := regexp.MustCompile(
		`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`,
	); !v4.MatchString(ids[0]) || ids[0] == ids[1] {
		t.Errorf("got %q, want different UUIDs of version 4", ids)
	}
}

// Running instances have used these values, so they must never change.
func TestRand_isStableBetweenReleases(t *testing.T) {
	t.Parallel()
	var uuid string
	var n int
	record(t, body(func(c *replay.Context) { uuid, n = c.NewUUID(), c.Rand().IntN(1000) }))
	if uuid != goldenUUID || n != goldenNumber {
		t.Errorf("got %q and %d, want %q and %d", uuid, n, goldenUUID, goldenNumber)
	}
}

func TestIsReplaying_untilTheHistoryEnds(t *testing.T) {
	t.Parallel()
	var saw []bool
	code := body(func(c *replay.Context) {
		saw = append(saw, c.IsReplaying())
		c.Await(activity(c, "a"))
		saw = append(saw, c.IsReplaying())
	})
	log := record(t, code)
	x := replay.New(code, options)
	t.Cleanup(func() { x.Close() })
	saw = nil
	if err := x.Replay(log); err != nil {
		t.Fatal(err)
	}
	turn(t, x, done(3))
	if !slices.Equal(saw, []bool{true, false}) {
		t.Error(saw)
	}
}

func TestReplay_gapInHistory_returnsError(t *testing.T) {
	t.Parallel()
	log := record(t, body(race), message(done(3)))
	x := replay.New(body(race), options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(slices.Delete(log, 5, 6)); err == nil ||
		!strings.Contains(err.Error(), "event #7 (ActivityCompleted) instead of #6") {
		t.Error(err)
	}
}

func TestReplay_payloadNotFetched_isError(t *testing.T) {
	t.Parallel()
	far := history.NewReferencePayload(history.Reference{Ref: "s3://b/k", SHA256: "x", Bytes: 1 << 20})
	log := record(t, body(race), message(done(3)))
	for name, damage := range map[string]func([]history.Event){
		"input":  func(log []history.Event) { log[0].Input = far },
		"result": func(log []history.Event) { log[6].Result = far },
	} {
		changed := slices.Clone(log)
		damage(changed)
		x := replay.New(body(race), options)
		if err := x.Replay(changed); err == nil || !strings.Contains(err.Error(), "not fetched") {
			t.Errorf("%s: got error %v", name, err)
		}
		x.Close()
	}
}

func TestReplay_suspendedInstance_releasesHistory(t *testing.T) {
	log := record(t, body(race), message(done(3)))
	x := replay.New(body(race), options)
	t.Cleanup(func() { x.Close() })
	held := weak.Make(&log[0])
	if err := x.Replay(log); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
	}
	if held.Value() != nil {
		t.Error("the instance still refers to the events")
	}
	runtime.KeepAlive(x)
}

// A replay that is not linear makes more allocations for each event. Comparing allocations needs no clock.
func TestReplay_longHistory_isLinear(t *testing.T) {
	code := func(n int) replay.Orchestration {
		return body(func(c *replay.Context) {
			for range n {
				c.Await(activity(c, "a"))
			}
		})
	}
	cost := func(n int) float64 {
		x := instance(t, code(n))
		log := append([]history.Event{started}, turn(t, x)...)
		for range n {
			log = append(log, turn(t, x, done(x.LastEventID()))...)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		y := replay.New(code(n), options)
		if err := y.Replay(log); err != nil || !y.Ended() {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	cost(10) // makes the allocations that happen only once
	if small, large := cost(1_000), cost(10_000); large > 11*small {
		t.Errorf("10,000 activities allocate %.0f bytes, 1,000 activities %.0f bytes", large, small)
	}
}

func TestBytes_coroutinesAndTasks_areCounted(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) {
		c.Await(activity(c, "a"))
		for range 100 {
			c.CreateTimer(time.Hour, "")
		}
		c.Await(activity(c, "b"))
	}))
	turn(t, x)
	one := x.Bytes()
	turn(t, x, done(3))
	many := x.Bytes()
	if one < 4<<10 || many < one+100*100 {
		t.Errorf("got %d bytes, then %d bytes with 100 more timers", one, many)
	}
}

const (
	goldenUUID   = "4cfb81d3-34c3-4608-9006-0d96571db894"
	goldenNumber = 428
)
