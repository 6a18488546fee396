package e2e_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The local cloud enforces the policy of GrantOperate, with which the commands for direct access work.
func TestRoles_grantOperate_permitsDirectCommands(t *testing.T) {
	if onLocalStack {
		t.Skip("LocalStack does not enforce IAM")
	}
	cfg := assume(t, "operator", ofGrant("GrantOperate")(t, describeStack(t)))
	resume := exec.Command(hub.perdure, "resume", "--all", "--hub", "e2e") // no context: it ends before the cleanup
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if out, err := resume.CombinedOutput(); err != nil { // other tests need the hub
			t.Errorf("resume: %v: %s", err, out)
		}
	})
	for _, args := range directCommands {
		exit, output := as(t, cfg, append(args, "--hub", "e2e")...)
		if exit != 0 && args[0] != "doctor" || strings.Contains(output, "AccessDenied") ||
			strings.Contains(output, "not authorized") {
			t.Errorf("perdure %s: got exit code %d: %s", args[0], exit, output)
		}
	}
}
