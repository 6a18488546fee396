package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The demo is a program that uses only the HTTP API. It exits with 1 unless all of its orders end as expected.
func TestDemo_thisDeployment_ordersEndAsExpected(t *testing.T) {
	// LocalStack takes minutes for the orders on a busy machine.
	demo := exec.CommandContext(t.Context(), "go", "run", "./examples/demo", "-timeout", "10m")
	demo.Dir, demo.Env = "../..", append(os.Environ(), "PERDURE_API="+hub.api)
	out, err := demo.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if err != nil || !strings.HasPrefix(last, "demo: ") {
		t.Fatalf("got error %v, output:\n%s", err, out)
	}
	t.Log(last)
}
