package updating_test

import (
	"reflect"
	"testing"

	"github.com/perdure/perdure/client/internal/updating"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A client of the HTTP API gets the result that a client with direct access reads.
func TestParseProblem_resultOfProblem_isTheSame(t *testing.T) {
	t.Parallel()
	failed := &history.Failure{Type: "error", Message: "no stock"}
	for name, r := range map[string]*provider.UpdateResult{
		"handler failed":        {Outcome: provider.UpdateCompleted, Error: failed, Reason: updating.CodeFailed},
		"rejected by validator": {Outcome: provider.UpdateRejected, Error: failed, Reason: history.RejectedByValidator},
		"rejected by limit":     {Outcome: provider.UpdateRejected, Error: failed, Reason: history.RejectedLimit},
		"aborted":               {Outcome: provider.UpdateAborted, Error: failed, Reason: "the execution failed"},
		"expired":               {Outcome: provider.UpdateResultExpired, Error: failed, Reason: updating.CodeExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, message := updating.Problem(r)
			if got := updating.ParseProblem(code, message, failed, nil); !reflect.DeepEqual(got, r) {
				t.Errorf("code %q, message %q: got %+v, want %+v", code, message, got, r)
			}
			if r.Outcome != provider.UpdateCompleted && r.Outcome != provider.UpdateRejected {
				return
			}
			got := updating.ParseProblem(code, message, nil, nil) // of an API of an earlier release
			if got.Error == nil || got.Error.Message != failed.Message {
				t.Errorf("without a failure: got %+v, want its message %q", got.Error, failed.Message)
			}
		})
	}
}
