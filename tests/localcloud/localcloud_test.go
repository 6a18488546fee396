package localcloud_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/tests/localcloud"
)

func TestCloud_respondsUntilStopped(t *testing.T) {
	t.Parallel()
	c, err := localcloud.Start(t.Context(), "cloud")
	if err != nil {
		t.Fatal(err)
	}
	url := c.Env["AWS_ENDPOINT_URL"] + "/_localstack/health"
	if status := get(t, url); status != http.StatusOK || c.PID == 0 {
		t.Errorf("HTTP %d from process %d", status, c.PID)
	}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	if status := get(t, url); status != 0 {
		t.Errorf("HTTP %d after Stop", status)
	}
}

// If the emulator is killed, the script ends with an error.
func TestCloud_emulatorIsKilled_endsWithError(t *testing.T) {
	t.Parallel()
	c, err := localcloud.Start(t.Context(), "cloud")
	if err != nil {
		t.Fatal(err)
	}
	emulator, err := os.FindProcess(c.PID)
	if err == nil {
		err = emulator.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Ended():
	case <-t.Context().Done():
	}
	if err = c.Stop(); err == nil || !strings.Contains(err.Error(), "ended unexpectedly with exit code -9") ||
		!strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("the script ended with %v", err)
	}
}

func TestStart_scriptFails_errorHasItsOutput(t *testing.T) {
	t.Parallel()
	_, err := localcloud.Start(t.Context(), "no-such-command")
	if err == nil || !strings.Contains(err.Error(), "invalid choice: 'no-such-command'") {
		t.Error(err)
	}
}

// get returns the status of a response, or 0 without a response.
func get(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode
}
