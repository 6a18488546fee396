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
	"github.com/perdure/perdure/internal/replaycheck"
)

func importVerb(c *command) *cobra.Command {
	var binary string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Replay an exported history",
		Long: `Replay an exported history against a binary on this machine.

FILE is the output of perdure export, a file of perduretest (Env.CompareGolden), or - for stdin. The orchestrator binary, built for this machine,
replays each execution. The command reports whether the code makes the recorded decisions, or the first event
at which they differ. It needs no hub, runs no activities and writes nothing. The binary gets no hub settings
and no AWS credentials.

Exit codes:
  0  the code makes the recorded decisions; inputs may differ and are shown
  1  error
  2  the code makes other decisions
  4  --timeout expired`,
		Example: `  perdure export order-7 --hub production > order-7.json
  go build -o dist/orchestrator-local ./functions/orchestrator
  perdure import order-7.json --binary dist/orchestrator-local`,
		Args: func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, args, "FILE") },
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case binary == "":
				return errors.New("--binary is required: the path of an orchestrator binary for this machine")
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
					return &exit{exitTimeout, fmt.Sprintf("replay not finished after %s; increase --timeout", timeout)}
				}
				return err
			}
			return r.tell(c)
		},
	}
	cmd.Flags().StringVar(&binary, "binary", "", "path of the orchestrator binary for this machine (required)")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "time limit of the replay")
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
		return doc, fmt.Errorf("read history: %w", err)
	}
	if doc, err = history.DecodeDocument(b); err != nil {
		return doc, fmt.Errorf("%s is not a history exported by perdure export: %w", file, err)
	}
	return doc, nil
}

// imported is the --json output of import.
type imported struct {
	InstanceID    string              `json:"instanceId"`
	Orchestration string              `json:"orchestration"`
	Executions    []importedExecution `json:"executions"`
}

// importedExecution is the result of replaying one execution.
type importedExecution struct {
	ExecutionID string               `json:"executionId"`
	Number      int64                `json:"number"`
	Events      int                  `json:"events"`
	Status      client.RuntimeStatus `json:"status"`
	Outcome     outcome              `json:"outcome"`
	EventID     int64                `json:"eventId,omitempty"` // the first event at which history and code differ
	Problem     string               `json:"problem,omitempty"`
}

// replayDocument has a binary replay each execution of a document.
func replayDocument(ctx context.Context, doc *history.Document, binary string) (*imported, error) {
	p := &rehearser{binary: binary}
	defer p.stop()
	r := &imported{InstanceID: doc.InstanceID, Orchestration: doc.Name}
	for i := range doc.Executions {
		x := &doc.Executions[i]
		verdict, err := p.replay(ctx, &replaycheck.History{InstanceID: doc.InstanceID, ExecutionID: x.ExecutionID, Events: x.Events}, source{document: doc.Find})
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

// importTexts describe the outcomes.
var importTexts = map[outcome]string{
	outcomeGoesOn: "matches the history", outcomeWouldBlock: "differs from the history",
	outcomeUnread:      "cannot be read",
	outcomeOtherInputs: "matches the history, with different inputs",
}

// tell prints the result, and returns an error if the replay differs from a history.
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
		return &exit{exitFailed, fmt.Sprintf("code differs from the history of %s: %s", r.InstanceID, r.firstProblem())}
	case count[outcomeUnread] > 0:
		return &exit{exitError, fmt.Sprintf("history of %s cannot be read: %s", r.InstanceID, r.firstProblem())}
	}
	return nil
}

// firstProblem returns the problem of the first execution that differs or cannot be read.
func (r *imported) firstProblem() string {
	for i := range r.Executions {
		if x := &r.Executions[i]; x.Outcome == outcomeWouldBlock || x.Outcome == outcomeUnread {
			return excerpt(x.Problem, longestFinding)
		}
	}
	return ""
}
