package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// rolledBack returns the events of a change that fails.
func rolledBack() [][]Event {
	return append(failing("UPDATE"), []Event{
		{Resource: "s", Type: "AWS::CloudFormation::Stack", Status: "UPDATE_ROLLBACK_COMPLETE"},
	})
}

// wantRolledBack changes a parameter and fails the test unless CloudFormation rolls the change back.
func (r *run) wantRolledBack(ctx context.Context, t *testing.T, aws *fakeAWS) {
	t.Helper()
	r.Parameters["WorkerMemory"] = "4096"
	result, err := r.deploy(ctx, aws)
	if failed, ok := errors.AsType[*FailedError](err); !ok || failed.Status != "UPDATE_ROLLBACK_COMPLETE" {
		t.Errorf("got %+v, %v", result, err)
	}
}

// The last event of the previous change becomes visible during the change, which fails.
func TestDeploy_eventOfEarlierChangeAppearsLate_isNotTheEnd(t *testing.T) {
	t.Parallel()
	for _, reads := range []int{0, 1} { // of the late event alone
		t.Run(fmt.Sprintf("%d reads", reads), func(t *testing.T) {
			t.Parallel()
			aws, r := newFakeAWS(), newRun(t)
			r.mustDeploy(t, aws)
			aws.unseen = 1
			aws.after = func(call string) error {
				switch {
				case aws.executed < 2:
				case call == "ExecuteChangeSet":
					aws.unseen = reads // the start of the change
					aws.script = append(make([][]Event, reads), rolledBack()...)
				case call == "StackEvents":
					aws.unseen = 0
				case isRunning(aws.stack.Status): // the change continues without reads of its events
					aws.step()
				}
				return nil
			}
			r.wantRolledBack(t.Context(), t, aws)
		})
	}
}

// Another engineer deploys the same content while the first one reads the changes. After the deployment of a third one,
// the change set of the same name has other changes.
func TestDeploy_changeSetReplacedDuringConfirmation_isNeitherExecutedNorDeleted(t *testing.T) {
	t.Parallel()
	refused := errors.New("not confirmed")
	for _, answer := range []error{nil, refused} {
		aws, r := newFakeAWS(), newRun(t)
		r.mustDeploy(t, aws)
		r.Confirm = func(ctx context.Context, _ *ChangeSet) error {
			return cmp.Or(errors.Join(aws.DeleteChangeSet(ctx, "", aws.last.Name), aws.CreateChangeSet(ctx, aws.last)), answer)
		}
		_, err := r.deploy(t.Context(), aws)
		if !errors.Is(err, cmp.Or(answer, errConcurrent)) || aws.executed != 1 || len(aws.sets) != 1 {
			t.Errorf("answer %v: got %v, %d executions, change sets %v", answer, err, aws.executed, aws.sets)
		}
	}
}

func TestDeploy_responseOfExecutionLost_reportsRunningChange(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	aws.after = func(call string) error {
		if call == "ExecuteChangeSet" {
			return errors.New("connection reset")
		}
		return nil
	}
	_, err := r.deploy(t.Context(), aws)
	if err == nil || !strings.Contains(err.Error(), "connection reset; CloudFormation may be changing stack perdure-orders; "+
		"run the command again to follow it") {
		t.Errorf("got %v", err)
	}
	aws.after, aws.unchanged = nil, true
	if result := r.mustDeploy(t, aws); result.Status != "CREATE_COMPLETE" || aws.executed != 1 {
		t.Errorf("the next run returns %+v", result)
	}
}

// The description of the stack is older than the events, which have the failure of the change.
func TestDeploy_staleStatusAfterRollback_fails(t *testing.T) {
	t.Parallel()
	aws, r := newFakeAWS(), newRun(t)
	r.mustDeploy(t, aws)
	aws.script = rolledBack()
	aws.after = func(call string) error {
		if call == "ExecuteChangeSet" {
			aws.described = "UPDATE_COMPLETE"
		}
		return nil
	}
	r.wantRolledBack(t.Context(), t, aws)
}
