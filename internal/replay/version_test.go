package replay_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// unversioned is the original code. versioned has a change between "a" and "b".
func unversioned(c *replay.Context) {
	c.Await(activity(c, "a"))
	c.Await(activity(c, "b"))
}

// versioned has a change with the versions least to most, and an activity for each version. It appends the version of
// each call to got.
func versioned(least, most int, got *[]int) func(*replay.Context) {
	return func(c *replay.Context) {
		c.Await(activity(c, "a"))
		for range 3 {
			v := c.Version("change", least, most)
			*got = append(*got, v)
		}
		name := "b"
		if v := (*got)[len(*got)-1]; v != replay.DefaultVersion {
			name = fmt.Sprintf("b%d", v)
		}
		c.Await(activity(c, name))
		*got = append(*got, c.Version("change", least, most))
	}
}

// marks returns the events that record versions.
func marks(events []history.Event) []history.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool {
		return e.Kind != history.VersionMarked
	})
}

// An execution that reaches a change uses the highest version and records it once. A replay uses the recorded version,
// even with later code.
func TestVersion_firstCall_recordsMaxVersion(t *testing.T) {
	t.Parallel()
	var live []int
	log := record(t, body(versioned(replay.DefaultVersion, 1, &live)), message(done(3)), message(done(7)))
	if !slices.Equal(live, []int{1, 1, 1, 1}) {
		t.Errorf("got versions %v, want only 1", live)
	}
	if m := marks(log); len(m) != 1 || m[0].ChangeID != "change" || m[0].Version != "1" || m[0].ID != 6 {
		t.Errorf("got recorded versions %+v in %v", m, kinds(log))
	}
	for _, most := range []int{1, 2, 9} {
		var again []int
		x := replay.New(body(versioned(1, most, &again)), options)
		t.Cleanup(func() { x.Close() })
		if err := x.Replay(log); err != nil || !x.Ended() || !slices.Equal(again, live) {
			t.Errorf("maximum version %d: got versions %v, error %v", most, again, err)
		}
	}
}

// With a history without the change, every replay runs the code before the change, even if a part is replayed or the
// code has waited.
func TestVersion_historyBeforeTheChange_returnsDefaultVersion(t *testing.T) {
	t.Parallel()
	log := record(t, body(unversioned), message(done(3)), message(done(6)))
	for n := range log {
		if log[n].Kind != history.TurnStarted {
			continue
		}
		var got []int
		x := replay.New(body(versioned(replay.DefaultVersion, 1, &got)), options)
		t.Cleanup(func() { x.Close() })
		if err := errors.Join(x.Replay(log[:n]), x.Replay(log[n:])); err != nil || !x.Ended() ||
			slices.ContainsFunc(got, func(v int) bool {
				return v != replay.DefaultVersion
			}) {
			t.Errorf("replay split before event #%d: got versions %v, ended %v, error %v", log[n].ID, got, x.Ended(),
				err)
		}
	}

	var got []int
	x := replay.New(body(versioned(replay.DefaultVersion, 1, &got)), options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(log[:6]); err != nil { // until it waits for "b"
		t.Fatal(err)
	}
	if events := turn(t, x, done(6)); len(marks(events)) > 0 || !x.Ended() {
		t.Errorf("got versions %v, then events %v", got, kinds(events))
	}

	got = nil
	x = replay.New(body(versioned(replay.DefaultVersion, 1, &got)), options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(log[:3]); err != nil { // it waits for "a", before the change
		t.Fatal(err)
	}
	if events := turn(t, x, done(3)); len(marks(events)) == 0 || got[0] != 1 {
		t.Errorf("execution before the change: got versions %v, events %v", got, kinds(events))
	}
}

// A version that the code does not support blocks the instance, and the error names the missing code.
func TestVersion_notInTheCode_namesTheMissingCode(t *testing.T) {
	t.Parallel()
	var ignored []int
	before := record(t, body(unversioned), message(done(3)))
	second := record(t, body(versioned(replay.DefaultVersion, 2, &ignored)), message(done(3)))
	for name, tt := range map[string]struct {
		log           []history.Event
		least, most   int
		eventID       int64
		expected, got string
	}{
		"code before the change is missing": {
			before, 1, 2, 5, `no version of "change"`,
			`Version("change", 1, 2): the code before the change is missing: deploy a build that contains it, with perdure.DefaultVersion as minVersion`,
		},
		"code of the version is missing": {
			second, 3, 4, 6, `version 2 of "change"`,
			"the code of version 2 is missing: deploy a build that contains it, with a minVersion of at most 2",
		},
		"a build is rolled back": {
			second, -1, 1, 6, `version 2 of "change"`,
			"the code of version 2 is not in this build: deploy a build that contains it, with a maxVersion of at " +
				"least 2",
		},
		"empty range of versions": {before, 3, 2, 5, "no version", "minVersion is greater than maxVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int
			x := replay.New(body(versioned(tt.least, tt.most, &got)), options)
			t.Cleanup(func() { x.Close() })
			var e *replay.NondeterminismError
			if err := x.Replay(tt.log); !errors.As(err, &e) {
				t.Fatalf("got versions %v, error %v", got, err)
			}
			if e.EventID != tt.eventID || !strings.Contains(e.Expected, tt.expected) ||
				!strings.Contains(e.Got, tt.got) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// Code without the call cannot continue an execution that uses the change, for example an execution of a newer build.
// The same is true if the call has moved past a decision, or if coroutines call in another order. The error names the
// change.
func TestVersion_callMissing_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := record(t, body(func(c *replay.Context) {
		a := activity(c, "a")
		c.Version("first", 0, 1)
		c.Version("second", 0, 2)
		c.Await(a)
		c.Version("third", 0, 3)
	}), message(done(3)))
	with := func(changes ...string) func(*replay.Context) {
		return func(c *replay.Context) {
			a := activity(c, "a")
			for _, change := range changes {
				c.Version(change, replay.DefaultVersion, 9)
			}
			c.Await(a)
			c.Version("third", replay.DefaultVersion, 9)
		}
	}
	for name, tt := range map[string]struct {
		code    func(*replay.Context)
		eventID int64
		change  string
	}{
		"build before the changes": {with(), 4, "first"},
		"a call is removed":        {with("first"), 5, "second"},
		"another order":            {with("second", "first"), 5, "second"},
		"moved before another call": {func(c *replay.Context) {
			c.Version("first", replay.DefaultVersion, 9)
			activity(c, "a")
		}, 4, "first"},
		"moved after an activity": {func(c *replay.Context) {
			c.Await(activity(c, "a"))
			c.Version("first", 0, 9)
		}, 4, "first"},
	} {
		x := replay.New(body(tt.code), options)
		t.Cleanup(func() { x.Close() })
		var e *replay.NondeterminismError
		if err := x.Replay(log); !errors.As(err, &e) || e.EventID != tt.eventID ||
			!strings.Contains(e.Expected, "VersionMarked \""+tt.change+"\"") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	for _, code := range []func(*replay.Context){with("new", "first", "newer", "second", "newest")} {
		x := replay.New(body(code), options)
		t.Cleanup(func() { x.Close() })
		if err := x.Replay(log); err != nil || !x.Ended() {
			t.Errorf("new changes between the recorded changes: got error %v", err)
		}
	}
}

// All coroutines and scopes use the same version, including cancelled scopes.
func TestVersion_coroutinesAndScopes_shareOneVersion(t *testing.T) {
	t.Parallel()
	var got []int
	code := func(c *replay.Context) {
		got = nil
		request := func() { got = append(got, c.Version("change", 0, 7)) }
		one, other := c.Go(request), c.Go(request)
		c.AwaitAll([]*replay.Task{one, other})
		c.Await(activity(c, "a"))
		request()
	}
	log := record(t, body(code), []history.Event{{Kind: history.CancelRequested, Reason: "requested"}})
	if !slices.Equal(got, []int{7, 7, 7}) {
		t.Errorf("got versions %v, want only 7", got)
	}
	if n := len(marks(log)); n != 1 {
		t.Errorf("got %d recorded versions, want 1", n)
	}
	x := replay.New(body(code), options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(log); err != nil || !slices.Equal(got, []int{7, 7, 7}) {
		t.Errorf("replay: got versions %v, error %v", got, err)
	}
}
