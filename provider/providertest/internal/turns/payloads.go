package turns

import (
	"bytes"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Payloads tests that values of users are returned as the same JSON, even if they contain characters that services can
// alter.
func Payloads() kit.Group {
	return kit.Group{Name: "payloads", Cases: []kit.Case{
		{Name: "StartInputs", Run: startInputs},
		{Name: "ActivityInputs", Run: activityInputs},
		{Name: "ActivityResults", Run: activityResults},
		{Name: "FailuresAndNames", Run: failuresAndNames},
	}}
}

// alteredDocuments returns JSON documents that services have altered in the past.
func alteredDocuments() []string {
	return []string{
		`null`, `true`, `0`, `-0.0`, `1e400`, `12345678901234567890123456789`, `1.50`, `""`, `[]`, `{}`,
		`{"b":1,"a":2}`,
		`"\u0000\u0001\u001f\u007f"`, "\"\uFFFE\uFFFF\"", `"\ufffe\uffff"`, "\"\u2028\u2029\"",
		`"<script>&amp;</script>"`, `"\ud83d\ude42"`,
		"\"🙂\U0010FFFF\"", `"\\\"\/"`, `"\t"`, `{"":{"":[[[[]]]]}}`, `"` + strings.Repeat("\uFFFF", 1000) + `"`,
		`"` + strings.Repeat("\\u0000", 1000) + `"`,
	}
}

// same reports whether two documents are the same JSON. It compares numbers as text and strings by their values.
func same(a, b []byte) bool {
	return bytes.Equal(kit.Canonical(a), kit.Canonical(b))
}

func wantSame(f *kit.Fixture, what string, got history.Payload, want string) {
	f.T.Helper()
	if !same(got, []byte(want)) {
		f.T.Errorf("%s: %s read back as %s", what, kit.Shorten(want), kit.Shorten(string(got)))
	}
}

func startInputs(f *kit.Fixture) {
	for n, doc := range alteredDocuments() {
		s := kit.StartOf(string(rune('a' + n)))
		s.Input = history.Payload(doc)
		in, err := f.Provider.StartOrchestration(f.Ctx(), s)
		f.Must(err)
		wantSame(f, "input", (&kit.Execution{F: f, Instance: in}).History()[0].Input, doc)
	}
}

func activityInputs(f *kit.Fixture) {
	e := f.Start("a")
	var events []history.Event
	for _, doc := range alteredDocuments() {
		event := kit.Activity(kit.Queue)
		event.Input = history.Payload(doc)
		events = append(events, event)
	}
	e.Commit(events...)
	items, log := f.Work(kit.Queue), e.History()
	for n, doc := range alteredDocuments() {
		wantSame(f, "work item", items[n].Input, doc)
		wantSame(f, "event", log[n+1].Input, doc)
	}
}

func activityResults(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.Repeat(len(alteredDocuments()), kit.Activity(kit.Queue))...)
	var all []provider.CompletedWorkItem
	for items := f.Locked(kit.Queue); len(items) > 0; items = f.Locked(kit.Queue) {
		all = append(all, kit.Done(items, func(int) provider.ActivityOutcome { return provider.ActivityOutcome{} })...)
	}
	for i := range all {
		all[i].Outcome.Result = history.Payload(alteredDocuments()[all[i].ActivityID-2])
	}
	f.Acknowledge(kit.Queue, all)
	n := 0
	for _, m := range f.Messages() {
		for _, o := range m.Outcomes {
			wantSame(f, "result", o.Result, alteredDocuments()[o.ActivityID-2])
			n++
		}
	}
	if n != len(alteredDocuments()) {
		f.T.Errorf("%d outcomes, want %d", n, len(alteredDocuments()))
	}
}

func failuresAndNames(f *kit.Fixture) {
	const odd = "a\x00b\x1f\uFFFE\uFFFF\u2028<&>🙂\\\""
	e := f.StartWithoutWake("a")
	scheduled := kit.Activity(kit.Queue)
	scheduled.Name = odd
	e.Commit(scheduled)
	items := f.Locked(kit.Queue)
	if len(items) != 1 || items[0].Name != odd {
		f.T.Fatalf("work items %s", kit.Text(items))
	}
	f.Acknowledge(kit.Queue, kit.Done(items, func(int) provider.ActivityOutcome {
		return provider.ActivityOutcome{Error: &history.Failure{Type: odd, Message: odd}}
	}))
	ms := f.Messages()
	if len(ms) != 1 || ms[0].Outcomes[0].Error.Message != odd || ms[0].Outcomes[0].Error.Type != odd {
		f.T.Errorf("messages %s", kit.Text(ms))
	}
	if log := e.History(); log[1].Name != odd {
		f.T.Errorf("the event has the name %q", log[1].Name)
	}
}
