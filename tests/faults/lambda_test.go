package faults_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// lambda calls the API of Lambda.
func lambda(t *testing.T, method, path string, in any) (out map[string]any) {
	t.Helper()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.WithoutCancel(t.Context()) // cleanups run after the test's own context has ended
	r, err := http.NewRequestWithContext(ctx, method, *hub.config.BaseEndpoint+"/2015-03-31/"+path,
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := hub.config.Credentials.Retrieve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), "lambda", hub.config.Region,
		time.Now()); err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("lambda: %s %s: HTTP %d %s, error %v", method, path, response.StatusCode, b, err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// functionName returns the name of a function of the hub.
func functionName(part string) string { return "perdure-" + hubName + "-" + part }

// withVariable sets an environment variable of a function until the test ends, as an operator would.
func withVariable(t *testing.T, part, name, value string) {
	t.Helper()
	path := "functions/" + functionName(part) + "/configuration"
	environment, _ := lambda(t, http.MethodGet, path, nil)["Environment"].(map[string]any)
	before, _ := environment["Variables"].(map[string]any)
	changed := maps.Clone(before)
	changed[name] = value
	set := func(variables map[string]any) {
		lambda(t, http.MethodPut, path, map[string]any{"Environment": map[string]any{"Variables": variables}})
	}
	set(changed)
	t.Cleanup(func() { set(before) })
}

// mapping returns the ID of the event source mapping of a function.
func mapping(t *testing.T, part string) (id string) {
	t.Helper()
	all, _ := lambda(t, http.MethodGet, "event-source-mappings/?FunctionName="+functionName(part),
		nil)["EventSourceMappings"].([]any)
	for _, each := range all {
		m, _ := each.(map[string]any)
		arn, _ := m["FunctionArn"].(string)
		if id, _ = m["UUID"].(string); strings.HasSuffix(arn, functionName(part)) {
			return id
		}
	}
	t.Fatalf("no event source mapping for %s", part)
	return ""
}
