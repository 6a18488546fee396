package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// shownFindings is how many instances are shown to a person; --json has more.
const shownFindings = 20

// longestFinding bounds a finding's text, which may be a stack.
const longestFinding = 1000

// outcomeTexts are the outcomes in words.
var outcomeTexts = map[outcome]string{
	outcomeWouldBlock: "would be blocked", outcomeStaysBlock: "stays blocked", outcomeUnread: "cannot be read",
	outcomeOtherInputs: "continues with the recorded inputs",
}

func printVerified(c *command, v *verified) error {
	if c.json {
		return c.printJSON(v)
	}

	t := table{header: []string{columnOrchestration, columnVersion, ">OPEN", ">REPLAYED", ">WOULD BLOCK", ">STAY BLOCKED", ">OTHER INPUTS", ">UNREAD"}}
	for i := range v.Orchestrations {
		n := &v.Orchestrations[i]
		t.add(excerpt(n.Orchestration, longestName), excerpt(cmp.Or(n.Version, "—"), longestName), strconv.Itoa(n.Open), strconv.Itoa(n.Replayed),
			strconv.Itoa(n.WouldBlock), strconv.Itoa(n.StayBlocked), strconv.Itoa(n.OtherInputs), strconv.Itoa(n.Unread))
	}
	var text strings.Builder
	text.WriteString(t.String())
	for i := range v.Findings[:min(shownFindings, len(v.Findings))] {
		f := &v.Findings[i]
		fmt.Fprintf(&text, "\n%s %s\n  %s\n", clean(f.InstanceID), outcomeTexts[f.Outcome], excerpt(f.Problem, longestFinding))
	}
	if more := len(v.Findings) - shownFindings; more > 0 {
		fmt.Fprintf(&text, "\n%d more, use --json to see them\n", more)
	}
	return c.print(text.String())
}
