package client_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// A restart has the input of the last execution. The old instance does not change.
func TestRestart_continuedInstance_usesInputOfLastExecution(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	if _, err := c.Start(t.Context(), "hello", 1, client.WithInstanceID("one"), client.WithVersion("1.0.0"),
		client.WithTags(map[string]string{"team": "a"})); err != nil {
		t.Fatal(err)
	}
	p.Append("one", history.Event{Kind: history.OrchestrationContinuedAsNew, Input: history.Payload("2"), Time: began})
	p.Append("one", history.Event{
		Kind: history.OrchestrationFailed, Error: &history.Failure{Message: "broken"}, Time: began,
	})

	id, err := c.Restart(t.Context(), "one")
	if err != nil || !strings.HasPrefix(id, "one.restart-") {
		t.Fatalf("Restart: got %q, error %v", id, err)
	}
	s, err := c.Status(t.Context(), id)
	if err != nil || s.Orchestration != "hello" || s.Version != "1.0.0" || s.Tags["team"] != "a" ||
		s.Status != client.StatusPending || s.ExecutionNumber != 1 {
		t.Errorf("new instance: got %+v, error %v", s, err)
	}
	for e, err := range c.History(t.Context(), id) {
		if err != nil || string(e.Input) != "2" {
			t.Errorf("input: got %s, error %v", e.Input, err)
		}
	}
	if s, err := c.Status(t.Context(), "one"); err != nil || s.Status != client.StatusFailed {
		t.Errorf("original instance: got %+v, error %v", s, err)
	}
}

// A repeated restart starts one instance. A restarted instance can be restarted again, and its ID does not become
// longer.
func TestRestart_repeatedCall_startsOneInstance(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	over := func(id string) {
		p.Append(id, history.Event{Kind: history.OrchestrationTerminated, Time: began})
	}
	if _, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID("one")); err != nil {
		t.Fatal(err)
	}
	over("one")
	first, err := c.Restart(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Restart(t.Context(), "one"); err != nil || again != first {
		t.Errorf("second restart: got %q, want %q, error %v", again, first, err)
	}
	over(first)
	second, err := c.Restart(t.Context(), first)
	if err != nil || second == first || strings.Count(second, ".restart-") != 1 {
		t.Errorf("restart of the new instance: got %q, error %v", second, err)
	}
	if other, err := c.Restart(t.Context(), "one", client.WithInstanceID("other"),
		client.WithVersion("1.0.0")); err != nil || other != "other" {
		t.Errorf("WithInstanceID: got %q, error %v", other, err)
	}
	if s, err := c.Status(t.Context(), "other"); err != nil || s.Version != "1.0.0" {
		t.Errorf("WithVersion: got %+v, error %v", s, err)
	}

	long := strings.Repeat("i", client.MaxInstanceIDBytes)
	if _, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID(long)); err != nil {
		t.Fatal(err)
	}
	over(long)
	if id, err := c.Restart(t.Context(), long); err != nil || id == "" || len(id) > 64 {
		t.Errorf("longest ID: got %q, error %v", id, err)
	}
}

// The options override the tags and the key of the ended instance. Restarts with another key start another instance.
func TestRestart_tagsAndKey_overrideThoseOfTheInstance(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	tags := client.WithTags(map[string]string{"team": "a"})
	if _, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID("one"), tags); err != nil {
		t.Fatal(err)
	}
	p.Append("one", history.Event{Kind: history.OrchestrationTerminated, Time: began})
	for id, test := range map[string]struct {
		tags client.StartOption
		want map[string]string
	}{
		"none":  {client.WithTags(nil), nil},
		"other": {client.WithTags(map[string]string{"try": "2"}), map[string]string{"try": "2"}},
	} {
		opts := []client.StartOption{client.WithInstanceID(id), client.WithIdempotencyKey(id), test.tags}
		for range 2 {
			if got, err := c.Restart(t.Context(), "one", opts...); got != id || err != nil {
				t.Fatalf("got %q, error %v, want %q", got, err, id)
			}
		}
		if s, err := c.Status(t.Context(), id); err != nil || !maps.Equal(s.Tags, test.want) {
			t.Errorf("%s: got tags %v, error %v", id, s.Tags, err)
		}
		_, err := c.Restart(t.Context(), "one", client.WithInstanceID(id), client.WithIdempotencyKey("new"))
		if !errors.Is(err, client.ErrAlreadyExists) {
			t.Errorf("%s with another key: got error %v", id, err)
		}
	}
	for field, opt := range map[string]client.StartOption{
		"idempotencyKey": client.WithIdempotencyKey(""), "tags": client.WithTags(map[string]string{"": "a"}),
	} {
		_, err := c.Restart(t.Context(), "one", opt)
		if wrong, is := errors.AsType[*provider.FieldError](err); !is || wrong.Field != field {
			t.Errorf("invalid %s: got error %v", field, err)
		}
	}
}

func TestRestart_missingOrRunningInstance_isRejected(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	if _, err := c.Restart(t.Context(), "missing"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("unknown instance: got error %v", err)
	}
	if _, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Restart(t.Context(), "one"); !errors.Is(err, client.ErrNotEnded) ||
		!overHTTP && !strings.Contains(err.Error(), `"one" is Pending`) {
		t.Errorf("pending instance: got error %v", err)
	}
	p.Append("one", history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1"), Time: began})
	if _, err := c.Restart(t.Context(), "one", client.WithInstanceID("one")); !errors.Is(err, client.ErrAlreadyExists) {
		t.Errorf("WithInstanceID with the same ID: got error %v", err)
	}
}

// The ID of a schedule or an entity is its identity, so Restart rejects schedules and entities. Restart accepts other
// instances with a similar ID or orchestration name.
func TestRestart_scheduleOrEntity_isRejected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, id, fix string }{
		{schedule.OrchestrationName, "schedule:nightly", "use schedule put"},
		{schedule.OrchestrationName, "schedule:nightly.restart-0123abcd", "use schedule put"},
		{"@stock", "@stock@tea", "purge it"},
		{"hello", "schedule:nightly", ""},
		{"hello", "@stock@tea", ""},
		{"@stock", "tea", ""},
	} {
		p := fakeprovider.New(func() time.Time { return began }, c.name)
		cl := connect(p)
		if _, err := cl.Start(t.Context(), c.name, nil, client.WithInstanceID(c.id)); err != nil {
			t.Fatal(err)
		}
		for _, ended := range []bool{false, true} {
			if ended {
				p.Append(c.id, history.Event{
					Kind: history.OrchestrationCompleted, Output: history.Payload("1"), Time: began,
				})
			}
			_, err := cl.Restart(t.Context(), c.id)
			field, refused := errors.AsType[*provider.FieldError](err)
			switch {
			case refused != (c.fix != ""), refused && !strings.Contains(field.Problem, c.fix):
				t.Errorf("%s of %s: got error %v, want the fix %q", c.id, c.name, err, c.fix)
			case !refused && ended && err != nil:
				t.Errorf("%s of %s: got error %v", c.id, c.name, err)
			}
		}
	}
}
