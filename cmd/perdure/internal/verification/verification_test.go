package verification

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// The error after the timeout mentions a throttling service, because a longer timeout may not help.
func TestExitError_timeoutDuringRetry_namesThrottlingService(t *testing.T) {
	t.Parallel()
	v := New(&cli.Env{}, nil, "")
	v.progress.SetRetry(errors.New("503 SlowDown"))
	found := v.Result()
	err := found.ExitError(Allowance{}, time.Minute, true)
	if e, ok := errors.AsType[*cli.ExitError](err); !ok || e.Code != cli.CodeTimeout ||
		!strings.Contains(e.Text, "after 1m0s; retrying after 503 SlowDown; increase --timeout") {
		t.Errorf("%v", err)
	}
}

// Many instances with other inputs do not displace findings about blocked or unread instances.
func TestResult_tooManyFindings_keepsMostSevere(t *testing.T) {
	t.Parallel()
	v := New(&cli.Env{}, nil, "")
	record := func(n int, id string, o Outcome) {
		for range n {
			v.addFinding(&Finding{InstanceID: id, Outcome: o})
		}
	}
	record(maxFindings+1, "inputs", OutcomeOtherInputs)
	record(maxFindings-1, "unread", OutcomeUnread)
	record(1, "blocks", OutcomeWouldBlock)
	found := v.Result().Findings
	ids := slices.Compact(func() (ids []string) {
		for i := range found {
			ids = append(ids, found[i].InstanceID)
		}
		return ids
	}())
	if len(found) != maxFindings || !slices.Equal(ids, []string{"blocks", "unread"}) {
		t.Errorf("%d findings, of %v", len(found), ids)
	}
}
