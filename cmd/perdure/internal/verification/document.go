package verification

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replaycheck"
)

// ImportResult is the --json output of import.
type ImportResult struct {
	InstanceID    string              `json:"instanceId"`
	Orchestration string              `json:"orchestration"`
	Executions    []ImportedExecution `json:"executions"`
}

// ImportedExecution is the result of replaying one execution.
type ImportedExecution struct {
	ExecutionID string               `json:"executionId"`
	Number      int64                `json:"number"`
	Events      int                  `json:"events"`
	Status      client.RuntimeStatus `json:"status"`
	Outcome     Outcome              `json:"outcome"`
	EventID     int64                `json:"eventId,omitempty"` // the first event at which history and code differ
	Problem     string               `json:"problem,omitempty"`
}

// ReplayDocument replays each execution of a document.
func ReplayDocument(ctx context.Context, doc *history.Document, binary string) (*ImportResult, error) {
	p := &replayer{binary: binary}
	defer p.stop()
	r := &ImportResult{InstanceID: doc.InstanceID, Orchestration: doc.Name}
	for i := range doc.Executions {
		x := &doc.Executions[i]
		h := &replaycheck.History{InstanceID: doc.InstanceID, ExecutionID: x.ExecutionID, Events: x.Events}
		verdict, err := p.replay(ctx, h, source{document: doc.Find})
		if err != nil {
			return nil, err
		}
		state := history.NewState(0, x.Events...)
		result := ImportedExecution{
			ExecutionID: x.ExecutionID, Number: x.Number, Events: len(x.Events), Status: state.Status(),
			Outcome: OutcomeContinues, EventID: verdict.EventID,
		}
		switch {
		case verdict.Unread != "":
			result.Outcome, result.Problem = OutcomeUnread, verdict.Unread
		case verdict.Problem != "":
			result.Outcome, result.Problem = OutcomeWouldBlock, verdict.Problem
		case verdict.OtherInputs > 0:
			result.Outcome, result.Problem = OutcomeOtherInputs, otherInputsText(verdict)
		}
		r.Executions = append(r.Executions, result)
	}
	return r, nil
}

// importOutcomeTexts describe the outcomes.
var importOutcomeTexts = map[Outcome]string{
	OutcomeContinues: "matches the history", OutcomeWouldBlock: "differs from the history",
	OutcomeUnread:      "cannot be read",
	OutcomeOtherInputs: "matches the history, with different inputs",
}

// Print prints the result, and returns an error if the replay differs from a history.
func (r *ImportResult) Print(env *cli.Env) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s\n", term.Clean(r.InstanceID), term.Clean(r.Orchestration))
	count := map[Outcome]int{}
	for i := range r.Executions {
		x := &r.Executions[i]
		count[x.Outcome]++
		fmt.Fprintf(&text, "execution %s, %d events, %s: %s\n",
			describe.Execution(x.ExecutionID, x.Number), x.Events, x.Status, importOutcomeTexts[x.Outcome])
		if x.Problem != "" {
			fmt.Fprintf(&text, "  %s\n", term.Excerpt(x.Problem, longestFinding))
		}
	}
	if err := env.PrintResult(r, text.String()); err != nil {
		return err
	}
	switch {
	case count[OutcomeWouldBlock] > 0:
		return cli.Exitf(cli.CodeFailed, "code differs from the history of %s: %s", r.InstanceID, r.firstProblem())
	case count[OutcomeUnread] > 0:
		return cli.Exitf(cli.CodeError, "history of %s cannot be read: %s", r.InstanceID, r.firstProblem())
	}
	return nil
}

// firstProblem returns the problem of the first execution that differs or cannot be read.
func (r *ImportResult) firstProblem() string {
	for i := range r.Executions {
		if x := &r.Executions[i]; x.Outcome == OutcomeWouldBlock || x.Outcome == OutcomeUnread {
			return term.Excerpt(x.Problem, longestFinding)
		}
	}
	return ""
}
