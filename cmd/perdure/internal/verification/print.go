package verification

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// shownFindings is the maximum number of findings in the text output. The --json output has more.
const shownFindings = 20

// longestFinding limits the text of a finding, which may be a stack.
const longestFinding = 1000

// outcomeTexts describe the outcomes that are printed.
var outcomeTexts = map[Outcome]string{
	OutcomeWouldBlock: "would be blocked", OutcomeStaysBlocked: "stays blocked", OutcomeUnread: "cannot be read",
	OutcomeOtherInputs: "continues with the recorded inputs",
}

// Print prints a result.
func Print(env *cli.Env, v *Result) error {
	t := term.Table{Header: []string{
		term.ColumnOrchestration, term.ColumnVersion, ">OPEN", ">REPLAYED", ">WOULD BLOCK", ">STAY BLOCKED",
		">OTHER INPUTS", ">UNREAD",
	}}
	for i := range v.Orchestrations {
		n := &v.Orchestrations[i]
		t.Add(term.Excerpt(n.Orchestration, term.MaxName), term.Excerpt(term.OrDash(n.Version), term.MaxName),
			strconv.Itoa(n.Open), strconv.Itoa(n.Replayed), strconv.Itoa(n.WouldBlock), strconv.Itoa(n.StayBlocked),
			strconv.Itoa(n.OtherInputs), strconv.Itoa(n.Unread))
	}
	var text strings.Builder
	text.WriteString(t.String())
	for i := range v.Findings[:min(shownFindings, len(v.Findings))] {
		f := &v.Findings[i]
		fmt.Fprintf(&text, "\n%s %s\n  %s\n",
			term.Clean(f.InstanceID), outcomeTexts[f.Outcome], term.Excerpt(f.Problem, longestFinding))
	}
	if more := len(v.Findings) - shownFindings; more > 0 {
		fmt.Fprintf(&text, "\n%d more, use --json to see them\n", more)
	}
	return env.PrintResult(v, text.String())
}
