package providertest

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Values of users are returned as the same JSON, regardless of how the services treat their characters.
func payloads() group {
	return group{"payloads", []testCase{
		{name: "StartInputs", run: startInputs},
		{name: "ActivityInputs", run: activityInputs},
		{name: "ActivityResults", run: activityResults},
		{name: "FailuresAndNames", run: failuresAndNames},
	}}
}

// documents returns JSON that has been altered by some service before.
func documents() []string {
	return []string{
		`null`, `true`, `0`, `-0.0`, `1e400`, `12345678901234567890123456789`, `1.50`, `""`, `[]`, `{}`, `{"b":1,"a":2}`,
		`"\u0000\u0001\u001f\u007f"`, "\"\uFFFE\uFFFF\"", `"\ufffe\uffff"`, "\"\u2028\u2029\"", `"<script>&amp;</script>"`, `"\ud83d\ude42"`,
		"\"🙂\U0010FFFF\"", `"\\\"\/"`, `"\t"`, `{"":{"":[[[[]]]]}}`, `"` + strings.Repeat("\uFFFF", 1000) + `"`, `"` + strings.Repeat("\\u0000", 1000) + `"`,
	}
}

// same reports whether two documents are the same JSON. Numbers are compared as text, strings by their values.
func same(a, b []byte) bool {
	return bytes.Equal(canonical(a), canonical(b))
}

func canonical(doc []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return doc
	}
	b, err := json.Marshal(v)
	if err != nil {
		return doc
	}
	return b
}

func (f *fixture) wantSame(what string, got history.Payload, want string) {
	f.t.Helper()
	if !same(got, []byte(want)) {
		f.t.Errorf("%s: %s read back as %s", what, shorten(want), shorten(string(got)))
	}
}

func startInputs(f *fixture) {
	for n, doc := range documents() {
		s := startOf(string(rune('a' + n)))
		s.Input = history.Payload(doc)
		in, err := f.p.StartOrchestration(f.ctx(), s)
		f.must(err)
		f.wantSame("input", (&execution{f: f, instance: in}).log()[0].Input, doc)
	}
}

func activityInputs(f *fixture) {
	e := f.start("a")
	var events []history.Event
	for _, doc := range documents() {
		event := activity(Queue)
		event.Input = history.Payload(doc)
		events = append(events, event)
	}
	e.commit(events...)
	items, log := f.work(Queue), e.log()
	for n, doc := range documents() {
		f.wantSame("work item", items[n].Input, doc)
		f.wantSame("event", log[n+1].Input, doc)
	}
}

func activityResults(f *fixture) {
	f.quiet("a").commit(repeat(len(documents()), activity(Queue))...)
	var all []provider.CompletedWorkItem
	for items := f.locked(Queue); len(items) > 0; items = f.locked(Queue) {
		all = append(all, done(items, func(int) provider.ActivityOutcome { return provider.ActivityOutcome{} })...)
	}
	for i := range all {
		all[i].Outcome.Result = history.Payload(documents()[all[i].ActivityID-2])
	}
	f.acknowledge(Queue, all)
	n := 0
	for _, m := range f.messages() {
		for _, o := range m.Outcomes {
			f.wantSame("result", o.Result, documents()[o.ActivityID-2])
			n++
		}
	}
	if n != len(documents()) {
		f.t.Errorf("%d outcomes, want %d", n, len(documents()))
	}
}

func failuresAndNames(f *fixture) {
	const odd = "a\x00b\x1f\uFFFE\uFFFF\u2028<&>🙂\\\""
	e := f.quiet("a")
	scheduled := activity(Queue)
	scheduled.Name = odd
	e.commit(scheduled)
	items := f.locked(Queue)
	if len(items) != 1 || items[0].Name != odd {
		f.t.Fatalf("work items %s", text(items))
	}
	f.acknowledge(Queue, done(items, func(int) provider.ActivityOutcome {
		return provider.ActivityOutcome{Error: &history.Failure{Type: odd, Message: odd}}
	}))
	ms := f.messages()
	if len(ms) != 1 || ms[0].Outcomes[0].Error.Message != odd || ms[0].Outcomes[0].Error.Type != odd {
		f.t.Errorf("messages %s", text(ms))
	}
	if log := e.log(); log[1].Name != odd {
		f.t.Errorf("the event has the name %q", log[1].Name)
	}
}
