package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/verification"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replaycheck"
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/provider"
)

// codeVariable is the environment variable that makes this test binary an orchestrator with the given code.
const codeVariable = "TEST_ORCHESTRATOR_CODE"

func TestMain(m *testing.M) {
	switch code := os.Getenv(codeVariable); code {
	case "":
		os.Exit(m.Run())
	case "asks on":
		requestForever()
	case "has none":
		_ = replaycheck.NewBinaryConn(os.Stdin, os.Stdout).Send(replaycheck.Reply{Ready: map[string][]string{}})
	case "matrix", "matrix, changed":
		r := matrixCode(&activityState{}, code != "matrix")
		lambdahandler.StartOrchestrator(r, lambdahandler.WithCodec(turned{}))
	case "takes, encoded":
		lambdahandler.StartOrchestrator(codeToVerify(code), lambdahandler.WithCodec(turned{}))
	default:
		lambdahandler.StartOrchestrator(codeToVerify(code))
	}
}

// codeToVerify returns the recorded version of fulfil, or a changed version.
func codeToVerify(code string) *perdure.Registry {
	r := perdure.NewRegistry()
	call := func(ctx *perdure.OrchestrationContext, activity string, order int) (int, error) {
		return perdure.CallActivityByName[int](ctx, activity, order).Await(ctx)
	}
	version := "1"
	if code == "other version" {
		version = "2"
	}
	perdure.AddOrchestration(r, "fulfil", func(ctx *perdure.OrchestrationContext, order int) (int, error) {
		switch code {
		case "changed":
			return call(ctx, "authorize", order)
		case "other input":
			return call(ctx, "charge", order+1)
		case "prints":
			fmt.Print("charging ", order)
		case "dies":
			fmt.Fprintln(os.Stderr, "no rates are there")
			os.Exit(7)
		case "takes", "takes, encoded":
			return takes(ctx, "measure", order)
		case "takes, and weighs":
			return takes(ctx, "weigh", order)
		case "sees the hub":
			fmt.Fprintln(os.Stderr, os.Environ())
			os.Exit(8)
		}
		return call(ctx, "charge", order)
	}, perdure.WithVersion(version))
	perdure.AddOrchestration(r, "hello", func(ctx *perdure.OrchestrationContext, _ any) (string, error) {
		return perdure.WaitForExternalEvent[string](ctx, "name").Await(ctx)
	})
	perdure.AddOrchestration(r, "relay", relay)
	return r
}

// takes calls an activity for the given number of texts, and another activity with their total length.
func takes(ctx *perdure.OrchestrationContext, then string, texts int) (int, error) {
	var futures []*perdure.Future[string]
	for range texts {
		futures = append(futures, perdure.CallActivityByName[string](ctx, "scan", nil))
	}
	length := 0
	for _, f := range futures {
		text, err := f.Await(ctx)
		if err != nil {
			return 0, err
		}
		length += len(text)
	}
	return perdure.CallActivityByName[int](ctx, then, length).Await(ctx)
}

// orchestratorOf returns an orchestrator binary with the given code.
func orchestratorOf(t *testing.T, code string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "orchestrator")
	script := fmt.Sprintf("#!/bin/sh\n%s='%s' exec '%s'\n", codeVariable, code, self)
	writeProgram(t, file, script)
	return file
}

// writeProgram writes an executable file. A process that another test starts meanwhile would inherit the open file, and
// the file could not be executed before that process has closed it (ETXTBSY). So no process starts during the write.
func writeProgram(t *testing.T, file, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// fulfilling starts an instance that has scheduled the activity charge.
func fulfilling(h *tool, id string, more ...history.Event) {
	h.mustRun("start", "fulfil", "--id", id, "--input", "7")
	h.Append(id, append([]history.Event{
		at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1", BuildID: "b-1"}),
		at(time.Second, history.Event{
			Kind: history.ActivityScheduled, Name: "charge", Queue: "default", Input: history.Payload("7"),
		}),
	}, more...)...)
}

// verified runs verify --json with the given code, and returns the exit code and the printed result.
func (h *tool) verified(code string, more ...string) (exit int, v verification.Result) {
	h.t.Helper()
	exit = h.run(h.t.Context(), append([]string{"verify", "--binary", orchestratorOf(h.t, code), "--json"}, more...)...)
	if h.out.Len() > 0 {
		if err := json.Unmarshal(h.out.Bytes(), &v); err != nil {
			h.t.Fatalf("%v: %s", err, h.out.String())
		}
	}
	return exit, v
}

// verify accepts code that makes the recorded decisions, even if the code prints text. verify ignores instances that
// have ended.
func TestVerify_matchingCode_succeeds(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"same", "prints"} {
		h := setup(t)
		fulfilling(h, "a")
		fulfilling(h, "b", at(2*time.Second, history.Event{
			Kind: history.OrchestrationCompleted, Output: history.Payload("1"),
		}))
		h.mustRun("start", "hello", "--id", "c")
		if exit, v := h.verified(code); exit != 0 || v.Open != 2 || v.Replayed != 2 || len(v.Findings) != 0 {
			t.Errorf("%s: exit %d, %+v; %s", code, exit, v, h.err.String())
		}
	}
}

// Each of these changes would block an instance or crash the function. verify reports the difference.
func TestVerify_incompatibleCode_isReported(t *testing.T) {
	t.Parallel()
	for code, wanted := range map[string]string{
		"changed":       `history has ActivityScheduled "charge", the code requested ActivityScheduled "authorize"`,
		"other version": `version "1" is not registered`,
		"dies":          "no rates are there",
	} {
		h := setup(t)
		fulfilling(h, "a")
		fulfilling(h, "b")
		h.mustRun("start", "hello", "--id", "c")
		exit, v := h.verified(code)
		if exit != cli.CodeFailed || v.Replayed != 3 || len(v.Findings) != 2 || v.Findings[0].InstanceID != "a" ||
			v.Findings[0].Outcome != verification.OutcomeWouldBlock ||
			!strings.Contains(v.Findings[0].Problem, wanted) {
			t.Errorf("%s: exit %d, %+v; %s", code, exit, v, h.err.String())
		}
		if !strings.Contains(h.err.String(), "2 of 3 replayed instances would be blocked") {
			t.Errorf("%s: got %s", code, h.err.String())
		}
		if code == "changed" && v.Findings[0].EventID != 3 {
			t.Errorf("differs at %d", v.Findings[0].EventID)
		}
	}
}

// verify accepts code that leaves a blocked instance blocked, or unblocks it.
func TestVerify_instanceIsAlreadyBlocked_succeeds(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"changed": 1, "same": 0} {
		h := setup(t)
		fulfilling(h, "a", at(2*time.Second, history.Event{
			Kind: history.InputsParked, BuildID: "b-2",
			Error: &history.Failure{Type: "nondeterminism", Message: "differs"},
			Inputs: []history.Event{
				{Kind: history.ActivityCompleted, SourceEventID: 3, Result: history.Payload("1"), Time: began},
			},
		}))
		exit, v := h.verified(code)
		if exit != 0 || v.Orchestrations[0].StayBlocked != want || v.Orchestrations[0].WouldBlock != 0 ||
			v.Replayed != 1 {
			t.Errorf("%s: exit %d, %+v; %s", code, exit, v, h.err.String())
		}
	}
}

// verify reports different inputs. They do not block the instance.
func TestVerify_differentInputs_areReportedWithoutFailure(t *testing.T) {
	t.Parallel()
	h := setup(t)
	fulfilling(h, "a")
	exit, v := h.verified("other input")
	if exit != 0 || v.Orchestrations[0].OtherInputs != 1 ||
		!strings.Contains(v.Findings[0].Problem, "1 inputs differ from the recorded inputs") {
		t.Errorf("exit %d, %+v; %s", exit, v, h.err.String())
	}
}

func TestVerify_changedCode_printsReport(t *testing.T) {
	t.Parallel()
	h := setup(t)
	fulfilling(h, "a")
	h.mustRun("start", "hello", "--id", "c")
	if exit := h.run(t.Context(), "verify", "--binary", orchestratorOf(t, "changed")); exit != cli.CodeFailed {
		t.Errorf("exit %d", exit)
	}
	h.wantGolden("verify.golden")
}

// verify reads referenced payloads from the hub, including payloads of earlier executions, large payloads and encoded
// payloads. A missing payload does not count as a difference.
func TestVerify_payloadReferences_areRead(t *testing.T) {
	t.Parallel()
	large := []byte(`"` + strings.Repeat("Ada", 3<<19) + `"`)
	for name, data := range map[string]history.Payload{
		"small": history.NewInlinePayload([]byte(`"Ada"`)), "large": history.NewInlinePayload(large),
		"encoded": history.EncodedPayload{
			Codec: turned{}.ID(), Data: around(large), Bytes: int64(len(large)),
		}.Payload(),
	} {
		for lies, unread := range map[string]bool{"x1": false, "x9": true} {
			if unread && name != "small" {
				continue
			}
			h := setup(t)
			h.mustRun("start", "hello", "--id", "c")
			raised := history.Event{
				Kind: history.ExternalEventRaised, Name: "name", EventID: "e", Data: data, Time: began,
			}
			h.Append("c",
				at(time.Second, history.Event{
					Kind: history.InputsParked, BuildID: "b", Inputs: []history.Event{raised},
				}),
				at(time.Second, history.Event{
					Kind: history.TurnStarted, Version: "0", BuildID: "b", ParkedConsumed: 1,
				}),
				at(time.Second, history.Event{Kind: history.ExternalEventSubscribed, Name: "name"}),
				at(time.Second, history.Event{
					Kind: history.ExternalEventRaised, Name: "name", EventID: "e",
					Data: history.DataLocation{
						ExecutionID: lies, Segment: 1, EventID: 2, Field: history.LocationInputs, Index: 0,
					}.ReferTo(data),
				}),
			)
			h.Append("c", at(time.Second, history.Event{
				Kind: history.ActivityScheduled, Name: "greet", Queue: "default", Input: history.Payload(`1`),
			}))
			exit, v := h.verified("takes, encoded")
			if v.Replayed != 1 || len(v.Findings) != 1 ||
				(v.Findings[0].Outcome == verification.OutcomeUnread) != unread || (exit == cli.CodeError) != unread {
				t.Errorf("%s, lies in %s: exit %d, %+v; %s", name, lies, exit, v, h.err.String())
			}
		}
	}
}

func TestVerify_invalidBinary_isAnError(t *testing.T) {
	t.Parallel()
	h := setup(t)
	fulfilling(h, "a")
	text := filepath.Join(t.TempDir(), "text")
	writeProgram(t, text, "no program")
	directory := t.TempDir()
	for wanted, binary := range map[string]string{
		"--binary " + directory +
			" is a directory; build the orchestrator for this machine and specify the file": directory,
		"--binary is required": "", "; build it for this machine": text, "no such file": "/no/such/binary",
		"cannot replay histories": "true",
		"has no orchestrations; add them to the registry that it passes to lambdahandler.StartOrchestrator": orchestratorOf(t, "has none"),
	} {
		h.wantError(cli.CodeError, wanted, "verify", "--binary", binary)
	}
	h.wantError(cli.CodeError, "--max-instances must be 1 or more", "verify", "--binary", "x", "--max-instances", "0")
	h.wantError(cli.CodeError, "--timeout must be more than 0", "verify", "--binary", "x", "--timeout", "0s")
}

// verify fails after its timeout, and if it cannot read any instance.
func TestVerify_timeoutOrNothingReadable_fails(t *testing.T) {
	t.Parallel()
	h := setup(t)
	fulfilling(h, "a")
	if exit, _ := h.verified("same", "--timeout", "1ns"); exit != cli.CodeTimeout {
		t.Errorf("exit %d after no time at all", exit)
	}

	in, err := h.ReadInstance(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	h.Damage(in.ExecutionID, fmt.Errorf("torn: %w", provider.ErrCorrupt))
	exit, v := h.verified("same")
	if exit != cli.CodeError || len(v.Findings) != 1 || v.Findings[0].Outcome != verification.OutcomeUnread {
		t.Errorf("exit %d, %+v; %s", exit, v, h.err.String())
	}
	h.FailWith(&provider.Error{Op: "DynamoDB.Query", Err: context.DeadlineExceeded})
	if exit, _ := h.verified("same"); exit != cli.CodeError {
		t.Errorf("exit %d although the list fails", exit)
	}
}

// The binary receives no hub settings, because a binary without the replay protocol would process messages of the hub.
func TestVerify_binary_getsNoHubSettings(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "a secret")
	t.Setenv("PERDURE_INBOX_URL", "an inbox")
	t.Setenv("AWS_REGION", "eu-central-1")
	h := setup(t)
	fulfilling(h, "a")
	exit, v := h.verified("sees the hub")
	if exit != cli.CodeFailed || !strings.Contains(v.Findings[0].Problem, "AWS_REGION=eu-central-1") ||
		strings.Contains(v.Findings[0].Problem, "a secret") || strings.Contains(v.Findings[0].Problem, "an inbox") {
		t.Errorf("exit %d, %+v", exit, v)
	}
}
