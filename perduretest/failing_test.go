package perduretest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// failing is the environment variable with the name of a test that a process runs although it fails.
const failing = "PERDURE_TEST_FAILS"

// wantFailure runs body in a separate process, as a test with the name of the calling test. The test must fail, and its
// output must contain all texts. wantFailure returns the output.
func wantFailure(t *testing.T, body func(t *testing.T), texts ...string) (output string) {
	t.Helper()
	return wantOutput(t, body, append(texts, "--- FAIL: "+t.Name()+"/bad", "--- PASS: "+t.Name()+"/the_next_test")...)
}

// wantOutput is like wantFailure, but the process may crash. Its -timeout is the default of go test: a busy machine
// needs more than half of a minute for the hours of virtual time after which some tests fail.
func wantOutput(t *testing.T, body func(t *testing.T), texts ...string) (output string) {
	t.Helper()
	return wantWithin(t, 10*time.Minute, body, texts...)
}

// wantWithin is like wantOutput, with a -timeout of go test.
func wantWithin(t *testing.T, timeout time.Duration, body func(t *testing.T), texts ...string) (output string) {
	t.Helper()
	if os.Getenv(failing) == t.Name() {
		t.Run("bad", body)
		t.Run("the next test", func(t *testing.T) { t.Log("it runs") })
		return ""
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$",
		"-test.v", "-test.timeout="+timeout.String())
	cmd.Env = append(os.Environ(), failing+"="+t.Name())
	b, err := cmd.CombinedOutput()
	out := string(b)
	if err == nil {
		t.Errorf("got a passing test:\n%s", out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("want %q in output:\n%s", text, out)
		}
	}
	return out
}
