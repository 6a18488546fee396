package deployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestDeploy_newStack_createsIt(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.Parameters = map[string]string{"WorkerMemory": "1024"}
	r.Tags = map[string]string{"team": "orders"}
	result := r.mustDeploy(t, aws)
	if !result.Changed || result.Status != "CREATE_COMPLETE" || result.Outputs["TableName"] != "orders" {
		t.Errorf("result %+v", result)
	}
	got := aws.last
	if !got.Create || got.Stack != "perdure-orders" || got.Tags["team"] != "orders" || len(got.Kept) > 0 {
		t.Errorf("change set %+v", got)
	}
	want := map[string]string{
		"HubName": "orders", "WorkerMemory": "1024", "CodeBucket": "code", "CodePrefix": "functions/",
	}
	for i, f := range functionNames {
		fn := someFunctions()[i]
		want[f.parameter] = fn.BuildID()
		if aws.objects["functions/"+fn.BuildID()+".zip"] == nil {
			t.Errorf("%s is not in the bucket", f.name)
		}
	}
	if !maps.Equal(got.Parameters, want) {
		t.Errorf("parameters %v, want %v", got.Parameters, want)
	}
	if key, _ := strings.CutPrefix(got.TemplateURL, "https://code/"); aws.objects[key] == nil {
		t.Errorf("the template %s is not in the bucket", key)
	}
	if !strings.Contains(r.out.String(), fmt.Sprintf("%-24s %-32s Table\n", "CREATE_COMPLETE", "AWS::DynamoDB::Table")) {
		t.Errorf("progress:\n%s", r.out.String())
	}
}

func TestDeploy_nothingChanged_changesNothing(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.mustDeploy(t, aws)
	uploads := aws.count("Put")
	aws.unchanged = true
	if result := r.mustDeploy(t, aws); result.Changed || result.Outputs["TableName"] != "orders" {
		t.Errorf("result %+v", result)
	}
	if aws.executed != 1 || aws.count("Put") != uploads || len(aws.sets) > 0 {
		t.Errorf("%d executions, %d uploads instead of %d, change sets %v", aws.executed, aws.count("Put"), uploads,
			aws.sets)
	}
}

func TestDeploy_newCode_uploadsOnlyChangedFunctions(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.mustDeploy(t, aws)
	uploads := aws.count("Put")
	r.Functions = func(context.Context, string) ([]Function, error) {
		all := someFunctions()
		all[1].Binary = []byte("new worker")
		return all, nil
	}
	if result := r.mustDeploy(t, aws); !result.Changed || result.Status != "UPDATE_COMPLETE" {
		t.Errorf("result %+v", result)
	}
	if n := aws.count("Put") - uploads; n != 1 || !strings.Contains(r.out.String(), "uploading worker, 1 KiB, to code") {
		t.Errorf("%d uploads:\n%s", n, r.out.String())
	}
}

func TestDeploy_update_keepsParameters(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.Parameters = map[string]string{"WorkerMemory": "1024", "Architecture": "x86_64"}
	r.mustDeploy(t, aws)
	r.Parameters, r.architecture = map[string]string{"APIMemory": "512"}, ""
	r.mustDeploy(t, aws)
	if got := aws.last; got.Create || !slices.Contains(got.Kept, "WorkerMemory") || got.Parameters["APIMemory"] != "512" {
		t.Errorf("change set %+v", got)
	}
	if r.architecture != "x86_64" || aws.stack.Parameters["WorkerMemory"] != "1024" {
		t.Errorf("architecture %s, parameters %v", r.architecture, aws.stack.Parameters)
	}
}

func TestDeploy_invalidRequest_changesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(aws *fakeAWS, r *run)
		want   string
	}{
		"other hub": {func(_ *fakeAWS, r *run) { r.Hub = "billing" }, "stack perdure-orders has hub orders, not billing"},
		"foreign stack": {
			func(aws *fakeAWS, _ *run) { aws.stack.Parameters = map[string]string{"Other": "1"} },
			"was not created from this template",
		},
		"unknown parameter": {
			func(_ *fakeAWS, r *run) { r.Parameters["WorkerMemry"] = "1" }, `no parameter "WorkerMemry"; it has APIKind`,
		},
		"visibility below the timeout": {
			func(_ *fakeAWS, r *run) { r.Parameters["InboxTimeout"] = "120" },
			"InboxVisibility: must not be less than InboxTimeout, 120 s; is 90 s",
		},
		"failed build": {
			func(_ *fakeAWS, r *run) {
				r.Functions = func(context.Context, string) ([]Function, error) { return nil, errors.New("syntax error") }
			}, "syntax error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aws, r := newFakeAWS(), newRun(t)
			r.mustDeploy(t, aws)
			c.change(aws, r)
			_, err := r.deploy(t.Context(), aws)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if aws.count("CreateChangeSet") != 1 || aws.executed != 1 {
				t.Errorf("calls %v", aws.calls)
			}
		})
	}
}

func TestDeploy_stackInFailedState_returnsFix(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"ROLLBACK_COMPLETE":      "delete it with aws cloudformation delete-stack --stack-name perdure-orders",
		"ROLLBACK_FAILED":        "delete-stack --stack-name perdure-orders",
		"CREATE_FAILED":          "delete-stack --stack-name perdure-orders",
		"DELETE_FAILED":          "delete-stack --stack-name perdure-orders",
		"UPDATE_ROLLBACK_FAILED": "continue-update-rollback --stack-name perdure-orders",
		"UPDATE_FAILED":          "run aws cloudformation rollback-stack --stack-name perdure-orders",
		"IMPORT_ROLLBACK_FAILED": "fix the cause in the console",
		"DELETE_IN_PROGRESS":     "wait until it is deleted",
	} {
		aws, r := newFakeAWS(), newRun(t)
		aws.stack = &Stack{ID: fakeStackID, Name: "perdure-orders", Status: status}
		_, err := r.deploy(t.Context(), aws)
		if err == nil || !strings.Contains(err.Error(), "stack perdure-orders is "+status) ||
			!strings.Contains(err.Error(), want) || len(aws.calls) != 1 {
			t.Errorf("%s: got %v after %v", status, err, aws.calls)
		}
		// The hub of a failed update has data, which a new stack does not find.
		updated := strings.HasPrefix(status, "UPDATE") || strings.HasPrefix(status, "IMPORT")
		if updated && strings.Contains(err.Error(), "delete") {
			t.Errorf("%s: got %v", status, err)
		}
	}
}

// failing has the events of a failed change: one resource fails, and CloudFormation cancels another one.
func failing(kind string) [][]Event {
	return [][]Event{{
		{Resource: "Api", Type: "AWS::Lambda::Function", Status: kind + "_FAILED", Reason: "Resource creation cancelled"},
		{
			Resource: "Worker", Type: "AWS::Lambda::Function", Status: kind + "_FAILED",
			Reason: "memory size\n4096 exceeds the quota",
		},
	}}
}

func TestDeploy_failedCreation_returnsFirstFailureAndRetainedResources(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	aws.script = append(failing("CREATE"), []Event{
		{Resource: "s", Type: "AWS::CloudFormation::Stack", Status: "ROLLBACK_IN_PROGRESS"},
		{Resource: "Table", Type: "AWS::DynamoDB::Table", Status: "DELETE_SKIPPED"},
		{Resource: "s", Type: "AWS::CloudFormation::Stack", Status: "ROLLBACK_COMPLETE"},
	})
	_, err := r.deploy(t.Context(), aws)
	failed, ok := errors.AsType[*FailedError](err)
	if !ok || failed.Status != "ROLLBACK_COMPLETE" {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"Worker (AWS::Lambda::Function) failed: memory size\n4096 exceeds the quota", "stack perdure-orders is ROLLBACK_COMPLETE",
		"retained without use: physical-Table",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	if out := r.out.String(); !strings.Contains(out, "Table: retained as physical-Table\n") {
		t.Errorf("progress:\n%s", out)
	}
	if _, err := r.deploy(t.Context(), aws); err == nil || !strings.Contains(err.Error(), "delete-stack") {
		t.Errorf("the next run returns %v", err)
	}
}

func TestDeploy_failedUpdate_isRolledBackAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.mustDeploy(t, aws)
	aws.script = append(failing("UPDATE"), []Event{
		{Resource: "s", Type: "AWS::CloudFormation::Stack", Status: "UPDATE_ROLLBACK_IN_PROGRESS"},
		{Resource: "Worker", Type: "AWS::Lambda::Function", Status: "UPDATE_COMPLETE"},
		{Resource: "s", Type: "AWS::CloudFormation::Stack", Status: "UPDATE_ROLLBACK_COMPLETE"},
	})
	r.Parameters["WorkerMemory"] = "4096"
	_, err := r.deploy(t.Context(), aws)
	if err == nil || !strings.Contains(err.Error(), "Worker (AWS::Lambda::Function) failed") ||
		!strings.Contains(err.Error(), "UPDATE_ROLLBACK_COMPLETE: the previous deployment is running") {
		t.Errorf("got %v", err)
	}
	if result := r.mustDeploy(t, aws); result.Status != "UPDATE_COMPLETE" {
		t.Errorf("the next run returns %+v", result)
	}
}

// A deployment of another process is followed to its end, and then the change is made.
func TestDeploy_runningChange_isFollowedFirst(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.mustDeploy(t, aws)
	aws.event("s", "AWS::CloudFormation::Stack", "UPDATE_IN_PROGRESS", "User Initiated")
	aws.event("Inbox", "AWS::SQS::Queue", "UPDATE_COMPLETE", "")
	aws.script = [][]Event{{{Resource: "Timers", Type: "AWS::SQS::Queue", Status: "UPDATE_COMPLETE"}}}
	r.Parameters["WorkerMemory"] = "512"
	if result := r.mustDeploy(t, aws); !result.Changed || aws.stack.Parameters["WorkerMemory"] != "512" {
		t.Errorf("result %+v", result)
	}
	out := r.out.String()
	first, second := strings.Index(out, "following the change"), strings.Index(out, "creating a change set")
	if first < 0 || second < first || strings.Count(out, "AWS::SQS::Queue") != 2 ||
		strings.Count(out, "CREATE_COMPLETE") != 0 {
		t.Errorf("progress:\n%s", out)
	}
}

func TestDeploy_concurrentDeployment_isReported(t *testing.T) {
	t.Parallel()
	for call, refusal := range map[string]*APIError{
		"CreateChangeSet": {
			Code: codeValidation, Message: "Stack:arn:… is in UPDATE_IN_PROGRESS state and can not be updated.", Status: 400,
		},
		"DescribeChangeSet": {Code: codeNoChangeSet, Status: 404},
		"ExecuteChangeSet":  {Code: codeChangeSetState, Status: 400},
	} {
		aws, r := newFakeAWS(), newRun(t)
		r.mustDeploy(t, aws)
		aws.before = func(c string) error {
			if c == call {
				return refusal
			}
			return nil
		}
		if _, err := r.deploy(t.Context(), aws); !errors.Is(err, errConcurrent) {
			t.Errorf("%s: got %v", call, err)
		}
		if aws.executed != 1 || len(aws.sets) > 0 {
			t.Errorf("%s: %d executions, change sets %v", call, aws.executed, aws.sets)
		}
	}
}

// A change set that appears between the confirmation and the execution is not executed over it.
func TestDeploy_stackChangesDuringConfirmation_isReported(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.mustDeploy(t, aws)
	r.Confirm = func(context.Context, *ChangeSet) error {
		aws.event("s", "AWS::CloudFormation::Stack", "UPDATE_IN_PROGRESS", "")
		return nil
	}
	if _, err := r.deploy(t.Context(), aws); !errors.Is(err, errConcurrent) || aws.executed != 1 {
		t.Errorf("got %v, %d executions", err, aws.executed)
	}
}

func TestDeploy_notConfirmed_deletesChangeSet(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	refused := errors.New("not confirmed")
	r.Confirm = func(context.Context, *ChangeSet) error { return refused }
	if _, err := r.deploy(t.Context(), aws); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if aws.executed != 0 || len(aws.sets) > 0 {
		t.Errorf("%d executions, change sets %v", aws.executed, aws.sets)
	}
	r.Confirm = func(context.Context, *ChangeSet) error { return nil }
	if result := r.mustDeploy(t, aws); result.Status != "CREATE_COMPLETE" {
		t.Errorf("the next run returns %+v", result)
	}
}

// A deployment is interrupted at each of its calls, before or after the call took effect. The error states whether the
// stack may change, and a repeated run completes one change.
func TestDeploy_interruptedAtAnyCall_canBeRepeated(t *testing.T) {
	t.Parallel()
	texts := map[ChangeState]string{
		NotChanged: "interrupted; this run has not changed stack ", Changed: "interrupted after the change of stack ",
		Changing: "interrupted; CloudFormation continues to change stack ",
	}
	for n := 1; ; n++ {
		for _, lost := range []bool{false, true} {
			aws, r := newFakeAWS(), newRun(t)
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			interrupt := func(string) error {
				if calls++; calls == n {
					cancel()
					return context.Cause(ctx)
				}
				return nil
			}
			if aws.before = interrupt; lost {
				aws.before, aws.after = nil, interrupt
			}
			result, err := r.deploy(ctx, aws)
			cancel()
			if err == nil {
				if result.Status != "CREATE_COMPLETE" || n < 10 {
					t.Fatalf("%+v after %d calls", result, calls)
				}
				return
			}
			where := fmt.Sprintf("call %d, %s, lost %t", n, aws.calls[n-1], lost)
			interrupted, ok := errors.AsType[*InterruptedError](err)
			if !ok || !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: got %v", where, err)
			}
			want := NotChanged
			if aws.count("ExecuteChangeSet") > 0 {
				want = Changing
				if aws.calls[n-1] == "DescribeStack" { // after the events of the end
					want = Changed
				}
			}
			if interrupted.State != want || !strings.HasPrefix(err.Error(), texts[want]) {
				t.Errorf("%s: got %v", where, err)
			}
			if want == NotChanged && (aws.executed > 0 || len(aws.sets) > 0) {
				t.Errorf("%s: %d executions, change sets %v", where, aws.executed, aws.sets)
			}

			aws.before, aws.after, aws.unchanged = nil, nil, aws.executed > 0
			if result := r.mustDeploy(t, aws); result.Status != "CREATE_COMPLETE" {
				t.Errorf("%s: the next run returns %+v", where, result)
			}
			if aws.executed != 1 || len(aws.sets) > 0 {
				t.Errorf("%s: %d executions, change sets %v", where, aws.executed, aws.sets)
			}
		}
	}
}

func TestDeploy_interruptedWhenTheChangeHasFailed_reportsTheFailure(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	aws, r := newFakeAWS(), newRun(t)
	r.mustDeploy(t, aws)
	aws.script = rolledBack()
	aws.after = func(call string) error {
		if call == "StackEvents" && aws.stack.Status == "UPDATE_ROLLBACK_COMPLETE" {
			cancel()
		}
		return nil
	}
	r.wantRolledBack(ctx, t, aws)
	if ctx.Err() == nil {
		t.Error("the deployment was not interrupted")
	}
}

// CloudFormation continues while AWS throttles the reads, so the command does not give up.
func TestDeploy_eventsThrottledForLong_continues(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	throttled := 0
	aws.before = func(call string) error {
		if call == "StackEvents" && aws.executed > 0 && throttled < 1000 {
			throttled++
			return &APIError{Operation: "read stack events", Code: "Throttling", Message: "Rate exceeded", Status: 400}
		}
		return nil
	}
	if result := r.mustDeploy(t, aws); !result.Changed || throttled != 1000 {
		t.Errorf("result %+v after %d throttled calls", result, throttled)
	}
}

func TestDeploy_credentialsExpireDuringChange_reportsRunningChange(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	aws.before = func(call string) error {
		if call == "StackEvents" && aws.executed > 0 {
			return &APIError{
				Operation: "read stack events", Code: "ExpiredToken", Message: "The security token is expired",
				Status: http.StatusForbidden,
			}
		}
		return nil
	}
	_, err := r.deploy(t.Context(), aws)
	if err == nil || !strings.Contains(err.Error(), "renew the AWS credentials") ||
		!strings.Contains(err.Error(), "CloudFormation continues to change stack perdure-orders") {
		t.Errorf("got %v", err)
	}
	aws.before, aws.unchanged = nil, true
	if result := r.mustDeploy(t, aws); result.Status != "CREATE_COMPLETE" || aws.executed != 1 {
		t.Errorf("the next run returns %+v", result)
	}
}

// A change set that AWS rejects is a failure with its reason, and not "no changes".
func TestCreateChangeSet_failed_returnsReason(t *testing.T) {
	t.Parallel()
	if isUnchanged("Parameter validation failed") || !isUnchanged("No updates are to be performed.") {
		t.Error("the reason of a failed change set is not recognized")
	}
}

func TestLosses_onlyStatefulResources(t *testing.T) {
	t.Parallel()
	c := ChangeSet{Changes: []Change{
		{"Modify", "Table", "AWS::DynamoDB::Table", "False"},
		{"Modify", "Inbox", "AWS::SQS::Queue", "True"},
		{"Modify", "Timers", "AWS::SQS::Queue", "Conditional"},
		{"Remove", "Payloads", "AWS::S3::Bucket", ""},
		{"Remove", "Schedules", "AWS::Scheduler::ScheduleGroup", ""},
		{"Remove", "Api", "AWS::ApiGatewayV2::Api", ""},
		{"Add", "Work", "AWS::SQS::Queue", ""},
	}}
	if got := c.Losses(); !slices.Equal(got, []string{"Inbox", "Timers", "Payloads", "Schedules"}) {
		t.Errorf("got %v", got)
	}
}
