package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/rehearsal"
)

func importVerb(c *command) *cobra.Command {
	var binary string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Replay an exported history against a binary on this machine",
		Long: `Replay an exported history against a binary on this machine.

FILE is what perdure export has printed; - is stdin. Each execution in it is replayed by the orchestrator's
binary, which is built for this machine, as perdure verify does with what is under way. It is told whether the
code takes the decisions that are recorded, and otherwise at which event it parts from them. No hub is asked,
no activity run, and nothing written: the binary gets neither a hub's settings nor your AWS credentials.

Exit codes: 0 when the code takes the recorded decisions, 2 when it does not, 4 when --timeout was over
first, 1 on any other error. Inputs that differ from those recorded are shown, and are no failure.`,
		Example: `  perdure export order-7 --hub production > order-7.json
  go build -o dist/orchestrator ./functions/orchestrator
  perdure import order-7.json --binary dist/orchestrator`,
		Args: func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, args, "FILE") },
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case binary == "":
				return errors.New("--binary is missing: the orchestrator's binary, built for this machine")
			case timeout <= 0:
				return fmt.Errorf("--timeout must be more than 0, is %v", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			doc, err := readExported(c, args[0])
			if err != nil {
				return err
			}
			r, err := replayDocument(ctx, &doc, binary)
			if err != nil {
				if cmd.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
					return &exit{exitTimeout, fmt.Sprintf("the history was not replayed after %s: --timeout gives more time", timeout)}
				}
				return err
			}
			return r.tell(c)
		},
	}
	cmd.Flags().StringVar(&binary, "binary", "", "the orchestrator's binary, for this machine (required)")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "give up after this time")
	cobra.CheckErr(cmd.MarkFlagFilename("binary"))
	return cmd
}

// readExported reads a document that was exported.
func readExported(c *command, file string) (doc history.Document, err error) {
	var b []byte
	if file == "-" {
		b, err = io.ReadAll(c.in)
	} else {
		b, err = os.ReadFile(file) //nolint:gosec // the path is the caller's
	}
	if err != nil {
		return doc, fmt.Errorf("read the history: %w", err)
	}
	if doc, err = history.DecodeDocument(b); err != nil {
		return doc, fmt.Errorf("%s is not what perdure export prints: %w", file, err)
	}
	return doc, nil
}

// imported is what import prints with --json.
type imported struct {
	InstanceID    string              `json:"instanceId"`
	Orchestration string              `json:"orchestration"`
	Executions    []importedExecution `json:"executions"`
}

// importedExecution is what became of the replay of one execution.
type importedExecution struct {
	ExecutionID string               `json:"executionId"`
	Number      int64                `json:"number"`
	Events      int                  `json:"events"`
	Status      client.RuntimeStatus `json:"status"`
	Outcome     outcome              `json:"outcome"`
	EventID     int64                `json:"eventId,omitempty"` // where history and code differ
	Problem     string               `json:"problem,omitempty"`
}

// replayDocument has a binary replay each execution of a document.
func replayDocument(ctx context.Context, doc *history.Document, binary string) (*imported, error) {
	p := &rehearser{binary: binary}
	defer p.stop()
	r := &imported{InstanceID: doc.InstanceID, Orchestration: doc.Name}
	for i := range doc.Executions {
		x := &doc.Executions[i]
		verdict, err := p.replay(ctx, &rehearsal.History{InstanceID: doc.InstanceID, ExecutionID: x.ExecutionID, Events: x.Events}, source{document: doc.Find})
		if err != nil {
			return nil, err
		}
		state := history.NewState(0, x.Events...)
		told := importedExecution{ExecutionID: x.ExecutionID, Number: x.Number, Events: len(x.Events), Status: state.Status(), Outcome: outcomeGoesOn, EventID: verdict.EventID}
		switch {
		case verdict.Unread != "":
			told.Outcome, told.Problem = outcomeUnread, verdict.Unread
		case verdict.Problem != "":
			told.Outcome, told.Problem = outcomeWouldBlock, verdict.Problem
		case verdict.OtherInputs > 0:
			told.Outcome, told.Problem = outcomeOtherInputs, otherInputs(verdict)
		}
		r.Executions = append(r.Executions, told)
	}
	return r, nil
}

// importTexts are the outcomes in words.
var importTexts = map[outcome]string{
	outcomeGoesOn: "the code takes the decisions that are recorded", outcomeWouldBlock: "the code takes other decisions", outcomeUnread: "it cannot be read",
	outcomeOtherInputs: "the code takes the decisions that are recorded, with other inputs",
}

// tell prints what became of the replay, and ends as a test does.
func (r *imported) tell(c *command) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s\n", clean(r.InstanceID), clean(r.Orchestration))
	count := map[outcome]int{}
	for i := range r.Executions {
		x := &r.Executions[i]
		count[x.Outcome]++
		fmt.Fprintf(&text, "execution %s, %d events, %s: %s\n", executionText(x.ExecutionID, x.Number), x.Events, x.Status, importTexts[x.Outcome])
		if x.Problem != "" {
			fmt.Fprintf(&text, "  %s\n", excerpt(x.Problem, longestFinding))
		}
	}

	var err error
	if c.json {
		err = c.printJSON(r)
	} else {
		err = c.print(text.String())
	}
	switch {
	case err != nil:
		return err
	case count[outcomeWouldBlock] > 0:
		return &exit{exitFailed, fmt.Sprintf("the code parts from the history of %s: %s", r.InstanceID, r.firstProblem())}
	case count[outcomeUnread] > 0:
		return &exit{exitError, fmt.Sprintf("the history of %s cannot be read: %s", r.InstanceID, r.firstProblem())}
	}
	return nil
}

// firstProblem is that of the first execution which is not replayed as it is recorded.
func (r *imported) firstProblem() string {
	for i := range r.Executions {
		if x := &r.Executions[i]; x.Outcome == outcomeWouldBlock || x.Outcome == outcomeUnread {
			return excerpt(x.Problem, longestFinding)
		}
	}
	return ""
}
