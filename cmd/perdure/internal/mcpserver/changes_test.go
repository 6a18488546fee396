package mcpserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func TestAllowed_names_areThoseOfTheTable(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]string{
		"": "", "cancel": "cancelActivity cancelInstance", "start,raise": "raiseEvent startOrchestration",
		"cancelActivity": "cancelActivity", "dead-letters redrive": "redriveDeadLetters",
	} {
		var list []string
		if names != "" {
			list = strings.Split(names, ",")
		}
		got, err := Allowed(list)
		if ids := strings.Join(slices.Sorted(maps.Keys(got)), " "); err != nil || ids != want {
			t.Errorf("%q allows %q, %v; want %q", names, ids, err, want)
		}
	}
	for name, want := range map[string]string{
		"cancle":   `"cancle" is not an operation; use a command (annotate, cancel, `,
		"":         `"" is not an operation`,
		"list":     "it changes nothing",
		"startJob": noToolBulk,
		"call":     noToolHandler,
	} {
		if _, err := Allowed([]string{name}); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "--allow ") {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestServer_nothingAllowed_hasOnlyReads(t *testing.T) {
	t.Parallel()
	f := newFixture(t).connect()
	tools := 0
	for tool, err := range f.session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tools++; !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s changes something", tool.Name)
		}
	}
	if tools != 11 {
		t.Errorf("%d tools", tools)
	}
}

// sent returns the kinds of the messages to the orchestrator.
func (f *fixture) sent() (kinds []string) {
	for _, m := range f.Sent() {
		kinds = append(kinds, string(m.Kind))
	}
	return kinds
}

// confirm calls a tool for a preview, and again with its confirmation.
func (f *fixture) confirm(tool string, args arguments) reply {
	f.t.Helper()
	before := len(f.Sent())
	r := f.call(tool, args)
	if r.Preview == nil || r.Preview.Confirmation == "" || len(f.Sent()) != before ||
		!r.Preview.ExpiresAt.Equal(f.now.Add(confirmationTime)) {
		f.t.Fatalf("%s: preview %+v, sent %v", tool, r.Preview, f.sent())
	}
	again := maps.Clone(args)
	again[fieldConfirmation] = r.Preview.Confirmation
	return f.call(tool, again)
}

func TestChanges_eachTool_changesOnlyAfterConfirmation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start("fulfil", "order-7")
	f.Append("order-7", at(time.Second, history.Event{Kind: history.TurnStarted}),
		at(time.Second, history.Event{Kind: history.ActivityScheduled, Name: "charge", Queue: "default"}))
	f.connect("start", "raise", "annotate", "cancel", "terminate", "pause", "resume", "restart", "purge",
		"dead-letters redrive", "dead-letters drop")

	r := f.confirm("start", arguments{"name": "ship", "id": "new", "input": 12345678901234567, "tags": arguments{"a": "b"}})
	if r.Untrusted.Data["instanceId"] != "new" {
		t.Errorf("start: %v", r.Untrusted.Data)
	}
	r = f.call("history", arguments{"id": "new"})
	if !strings.Contains(r.Untrusted.Text, "12345678901234567") {
		t.Errorf("the input lost digits: %s", r.Untrusted.Text)
	}
	f.wantError("start", arguments{"name": "ship", "id": "new"}, "instance ID already in use")

	for tool, args := range map[string]arguments{
		"raise": {"event": "paid", "data": arguments{"sum": 5}}, "cancel": {"message": "too late"},
		"pause": {}, "resume": {}, "cancel_activity": {"activity": 3}, "terminate": {"message": "stuck"},
	} {
		before := len(f.Sent())
		args["id"] = "order-7"
		if r := f.confirm(tool, args); r.Untrusted.Data["instanceId"] != "order-7" {
			t.Errorf("%s: %v", tool, r.Untrusted.Data)
		}
		if tool != "cancel_activity" && tool != "resume" && len(f.Sent()) != before+1 {
			t.Errorf("%s sent %v", tool, f.sent()[before:])
		}
	}
	f.confirm("annotate", arguments{"id": "order-7", "note": "look at this"})
	r = f.call("status", arguments{"id": "order-7"})
	r.wantFacts(t, "look at this")

	f.Append("order-7", at(time.Minute, history.Event{Kind: history.OrchestrationCompleted}))
	if r := f.confirm("restart", arguments{"id": "order-7"}); r.Untrusted.Data["instanceId"] == "order-7" {
		t.Errorf("restart: %v", r.Untrusted.Data)
	}
	f.confirm("purge", arguments{"id": "order-7"})
	f.wantError("status", arguments{"id": "order-7"}, "instance not found")

	first := f.letters.Bury("default", "corrupt: a", `{"instanceId":"order-7"}`)
	second := f.letters.Bury("default", "corrupt: b", `{"instanceId":"order-7"}`)
	f.confirm("redrive_dead_letters", arguments{"queue": "default", "ids": []string{first}})
	f.confirm("drop_dead_letters", arguments{"queue": "default", "ids": []string{second}})
	if visible, _, err := f.letters.CountDeadLetters(t.Context(), "default"); visible != 0 || err != nil ||
		len(f.letters.Redriven()) != 1 {
		t.Errorf("%d dead letters are left, %d redriven: %v", visible, len(f.letters.Redriven()), err)
	}
	f.wantError("drop_dead_letters", arguments{"queue": "default", "ids": []string{}}, "ids must have 1 to 10 entries")
	f.wantError("drop_dead_letters", arguments{"queue": "default", "ids": []string{"x"}}, "1 of 1 dead letters not found")
}

// A user may see only the preview.
func TestPreview_eachArgument_isInBothForms(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start("fulfil", "order-7")
	f.connect("raise", "start")
	r := f.call("raise", arguments{
		"id": "order-7", "event": "refund", "data": arguments{"cents": 12345678901234567, "to": "a\u202eb"},
	})
	r.wantFacts(t, `event: `, `refund`, `12345678901234567`, `Orchestration  fulfil`)
	if strings.Contains(r.text, "\u202e") {
		t.Errorf("a direction character is not escaped: %s", r.text)
	}
	long := strings.Repeat("x", 100_000)
	r = f.call("start", arguments{"id": "new", "name": "ship", "input": long, "tags": arguments{"team": "blue"}})
	r.wantFacts(t, "ship", "blue", "No instance has this ID", "[cut: ")
}

func TestConfirmation_otherArgumentsStateOrTime_isRejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start("fulfil", "order-7")
	f.start("fulfil", "order-8")
	f.Append("order-7", at(time.Second, history.Event{Kind: history.TurnStarted}))
	f.connect("cancel", "terminate")
	preview := func() string {
		t.Helper()
		return f.call("cancel", arguments{"id": "order-7", "message": "a"}).Preview.Confirmation
	}
	args := func(confirmation string) arguments {
		return arguments{"message": "a", "id": "order-7", "confirmation": confirmation}
	}

	// other arguments, another tool, another value
	c := preview()
	f.wantError("cancel", arguments{"id": "order-8", "message": "a", "confirmation": c}, "other arguments")
	f.wantError("cancel", arguments{"id": "order-7", "message": "b", "confirmation": c}, "other arguments")
	f.wantError("cancel", arguments{"id": "order-7", "confirmation": c}, "other arguments")
	f.wantError("terminate", args(c), "other arguments")
	f.wantError("cancel", args(c+"x"), "not known or has expired")
	// it is still valid, once
	f.call("cancel", args(c))
	f.wantError("cancel", args(c), "used already")
	if kinds := f.sent(); len(kinds) != 1 {
		t.Errorf("sent %v", kinds)
	}

	// expired
	c = preview()
	f.now = f.now.Add(confirmationTime)
	f.wantError("cancel", args(c), "not known or has expired")
	// another status
	c = preview()
	f.Append("order-7", at(time.Minute, history.Event{Kind: history.OrchestrationCompleted}))
	f.wantError("cancel", args(c), "has changed, and nothing was done")
	f.wantError("cancel", args(c), "used already")
	if kinds := f.sent(); len(kinds) != 1 {
		t.Errorf("sent %v", kinds)
	}
	// an error of the hub
	c = preview()
	f.wantError("cancel", args(c), "instance has ended")
}

func TestConfirmations_many_keepsTheNewest(t *testing.T) {
	t.Parallel()
	now := began
	c := newConfirmations(func() time.Time { return now })
	first, _ := c.issue("a", "s")
	var last string
	for range maxConfirmations {
		last, _ = c.issue("a", "s")
	}
	if _, err := c.use(first, "a"); err == nil {
		t.Error("the oldest is kept")
	}
	if state, err := c.use(last, "a"); err != nil || state != "s" {
		t.Errorf("the newest: %q, %v", state, err)
	}
	now = now.Add(confirmationTime)
	c.issue("a", "s")
	if len(c.known) != 1 || len(c.order) != 1 {
		t.Errorf("%d expired ones are kept", len(c.known)-1)
	}
}

// A change that fails uses up its confirmation, because it may have taken effect.
func TestConfirmation_hubFails_isUsedUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start("fulfil", "order-7")
	f.connect("cancel")
	c := f.call("cancel", arguments{"id": "order-7"}).Preview.Confirmation
	args := arguments{"id": "order-7", "confirmation": c}
	f.FailWith(&provider.Error{Op: "SQS.SendMessage", Retryable: true, Err: errors.New("slow down")})
	f.wantError("cancel", args, "SQS.SendMessage")
	f.FailWith(nil)
	f.wantError("cancel", args, "used already", "check the status")
}

// undeletable is a queue of dead letters that does not delete one of them.
type undeletable struct {
	backend

	id string
}

func (u undeletable) DropDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	if slices.ContainsFunc(letters, func(d provider.DeadLetter) bool { return d.Record.ID == u.id }) {
		return errors.New("slow down")
	}
	return u.backend.DropDeadLetters(ctx, queue, letters...)
}

func TestDropDeadLetters_oneFails_reportsHowManyAreDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kept, gone := f.letters.Bury("default", "corrupt: a", "{}"), f.letters.Bury("default", "corrupt: b", "{}")
	f.hub.Admin = admin.New(undeletable{backend{f.Provider, f.letters}, kept}, admin.WithClock(f.env.Now))
	f.connect("dead-letters drop")
	args := arguments{"queue": "default", "ids": []string{kept, gone}}
	args[fieldConfirmation] = f.call("drop_dead_letters", args).Preview.Confirmation
	f.wantError("drop_dead_letters", args, "1 dead letters done, 0 kept, 1 failed", "slow down")
}
