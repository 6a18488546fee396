package instances

import (
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

func TestExitCode_status_hasItsCode(t *testing.T) {
	t.Parallel()
	for s, want := range map[client.RuntimeStatus]int{
		"Cancelled": cli.CodeCancelled, "Terminated": cli.CodeCancelled, "Running": cli.CodeError,
	} {
		if got := exitCode(s); got != want {
			t.Errorf("%s: exit %d, want %d", s, got, want)
		}
	}
}
