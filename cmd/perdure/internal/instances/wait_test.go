package instances

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

func TestExitError_status_hasItsCode(t *testing.T) {
	t.Parallel()
	for s, want := range map[client.RuntimeStatus]int{
		"Cancelled": cli.CodeCancelled, "Terminated": cli.CodeCancelled, "Running": cli.CodeError,
	} {
		if e, ok := errors.AsType[*cli.ExitError](exitError(s)); !ok || e.Code != want {
			t.Errorf("%s: %v, want exit %d", s, exitError(s), want)
		}
	}
}
