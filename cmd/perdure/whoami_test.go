package main

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/httpapi"
)

// A Lambda authorizer can accept tokens that are no JWTs.
func TestWhoAmI_tokenIsNoJWT_reportsOperations(t *testing.T) {
	t.Parallel()
	h := setup(t)
	server := httptest.NewServer(httpapi.New(client.New(h.Provider), admin.New(h.Provider),
		httpapi.WithLogger(slog.New(slog.DiscardHandler))))
	defer server.Close()
	h.env[cli.TokenVariable] = "opaque-token"
	var got struct {
		Identity   string            `json:"identity"`
		Operations []json.RawMessage `json:"operations"`
	}
	if err := json.Unmarshal([]byte(h.mustRun("whoami", "--api", server.URL, "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Identity != "" || len(got.Operations) == 0 {
		t.Errorf("got identity %q, %d operations", got.Identity, len(got.Operations))
	}
	text := h.mustRun("whoami", "--api", server.URL)
	if !strings.Contains(text, "identity:   unknown (the token has no subject)\n") || strings.Contains(text, "opaque") {
		t.Errorf("printed %s", text)
	}
}
