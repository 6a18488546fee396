package main

import (
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// A hub without a bucket has nothing to sweep.
func TestSweep_noPayloadStore_deletesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t)
	if got := h.mustRun("sweep"); got != "0 payloads deleted\n" {
		t.Errorf("printed %q", got)
	}
	if got := h.mustRun("sweep", "--json"); got != `{"deleted":0}`+"\n" {
		t.Errorf("printed %q", got)
	}
	h.wantError(cli.CodeError, "unexpected argument", "sweep", "order-7")
}
