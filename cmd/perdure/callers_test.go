package main

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The commands show the callers that started, cancelled and terminated an instance. They shorten an identity to its
// distinguishing part.
func TestStatusWhyAndHistory_callers_arePrinted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	alice, bob := "arn:aws:sts::123456789012:assumed-role/Ops/alice", "arn:aws:iam::123456789012:user/bob\x1b[2J"
	if _, err := h.StartOrchestration(t.Context(),
		provider.Start{
			InstanceID: "one", Name: "hello", StartID: "s", Input: history.Payload("1"), RequestedBy: alice,
		}); err != nil {
		t.Fatal(err)
	}
	h.Append("one",
		at(0, history.Event{Kind: history.TurnStarted, Version: "1.0.0"}),
		at(0, history.Event{
			Kind: history.ExternalEventRaised, Name: "nudge", EventID: "e", Data: history.Payload("1"),
			RequestedBy: "a program",
		}),
		at(0, history.Event{Kind: history.CancelRequested, Reason: "requested", RequestedBy: alice}),
		at(0, history.Event{Kind: history.OrchestrationTerminated, Message: "enough", RequestedBy: bob}))
	for verb, want := range map[string][]string{
		"status": {"Started by     " + alice + "\n", "Terminated by  arn:aws:iam::123456789012:user/bob"},
		"why": {
			"\nstarted by " + alice + "\n", "\nterminated by arn:aws:iam::123456789012:user/bob",
			" assumed-role/Ops/alice ",
		},
		"history": {"by assumed-role/Ops/alice", "by a program", `"enough" by user/bob`},
	} {
		got := h.mustRun(verb, "one")
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s does not show %q:\n%s", verb, text, got)
			}
		}
		if strings.Contains(got, "\x1b") {
			t.Errorf("%s prints the control characters of a name", verb)
		}
	}
	if got := h.mustRun("status", "one", "--json"); !strings.Contains(got, `"startedBy":"`+alice+`","terminatedBy":"`) {
		t.Errorf("printed %s", got)
	}
}
