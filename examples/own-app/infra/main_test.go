package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// The test needs no AWS account and only empty binaries.
func TestAddStack_hasTheHubAndTheLedger(t *testing.T) {
	binaries, out := t.TempDir(), t.TempDir()
	for _, function := range []string{"orchestrator", "worker", "renewer", "api"} {
		dir := filepath.Join(binaries, function)
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bootstrap"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(out)})
	addStack(app, binaries)
	app.Synth(nil)

	b, err := os.ReadFile(filepath.Join(out, "Subscriptions.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]struct {
			Type       string         `json:"Type"`
			Properties map[string]any `json:"Properties"`
		} `json:"Resources"`
	}
	if err := json.Unmarshal(b, &template); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	ledger := false
	for id, r := range template.Resources {
		count[r.Type]++
		if r.Type == "AWS::IAM::Policy" && strings.HasPrefix(id, "HubWorkerpayments") {
			policy, _ := json.Marshal(r.Properties)
			ledger = strings.Contains(string(policy), "Ledger")
		}
	}
	for kind, want := range map[string]int{
		"AWS::Lambda::Function": 5, "AWS::Lambda::Alias": 3, "AWS::DynamoDB::Table": 2,
		"AWS::Lambda::EventSourceMapping": 4,
	} {
		if count[kind] != want {
			t.Errorf("%d of %s, want %d", count[kind], kind, want)
		}
	}
	if !ledger {
		t.Error("the worker of payments has no access to the ledger")
	}
}
