package cdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aws/jsii-runtime-go"

	refstack "github.com/perdure/perdure/infra/cdk/reference"
)

// reference is the template of the reference stack. It is synthesized once, because jsii starts a Node process, which
// takes seconds. Tests only read it.
var reference []byte

// jsiiLock must be held while constructs are created: all tests share one Node process.
var jsiiLock sync.Mutex

func TestMain(m *testing.M) {
	code := 1
	if err := prepare(); err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, "infra/cdk:", err)
	}
	jsii.Close()
	os.Exit(code)
}

func prepare() error {
	if _, err := exec.LookPath("node"); err != nil {
		return fmt.Errorf("the AWS CDK needs Node.js 20 or later, and there is no `node` on the PATH: %w\n"+
			"Get it from https://nodejs.org/ or your package manager, then run the tests again", err)
	}
	// Warnings about the end of life of Node are not relevant to the tests.
	if err := os.Setenv("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1"); err != nil {
		return fmt.Errorf("silence jsii: %w", err)
	}
	var err error
	reference, err = synthesise()
	return err
}

// synthesise returns the template of the reference stack with the placeholder binaries and normalized hashes.
func synthesise() ([]byte, error) {
	raw, err := synthesiseStack(refstack.StackProps{
		FunctionsDir: placeholders, WorkQueues: []string{"default"}, Exclusive: true, Client: true,
		LargePayloads: true,
	})
	if err != nil {
		return nil, err
	}
	return normalise(raw)
}

// synthesiseStack returns the template of a stack of package reference.
func synthesiseStack(props refstack.StackProps) ([]byte, error) {
	dir, err := os.MkdirTemp("", "perdure-cdk-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the cloud assembly: %w", err)
	}
	defer os.RemoveAll(dir)
	refstack.NewApp(dir, props).Synth(nil)
	raw, err := os.ReadFile(filepath.Join(dir, "Perdure.template.json"))
	if err != nil {
		return nil, fmt.Errorf("read the synthesised template: %w", err)
	}
	return raw, nil
}

// placeholders has files instead of built binaries, so that the template does not change with the binaries.
const placeholders = "testdata/functions"

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// normalise replaces each asset hash by asset-<binary>. A local deployment replaces asset-<binary> by the hash of the
// real binary.
func normalise(raw []byte) ([]byte, error) {
	var parsed template
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return nil, fmt.Errorf("parse the synthesised template: %w", err)
	}
	text := string(raw)
	for _, function := range parsed.ofType("AWS::Lambda::Function") {
		hash := function.text("Environment", "Variables", "PERDURE_BUILD_ID")
		binary, err := binaryOf(function.id)
		if err != nil || !hashPattern.MatchString(hash) {
			return nil, fmt.Errorf("function %s has asset hash %q: %w", function.id, hash, err)
		}
		text = strings.ReplaceAll(text, hash, "asset-"+binary)
	}
	return []byte(text + "\n"), nil
}

// binaryOf returns the binary of the function with a logical ID.
func binaryOf(logicalID string) (string, error) {
	for _, binary := range []string{"orchestrator", "worker", "renewer", "api"} {
		if strings.HasPrefix(strings.ToLower(logicalID), "taskhub"+binary) {
			return binary, nil
		}
	}
	return "", fmt.Errorf("no binary is known for function %s", logicalID)
}
