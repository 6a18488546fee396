package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/development"
	"github.com/perdure/perdure/localstack"
)

// The embedded template is the template that the CDK tests write.
func TestEmbeddedTemplate_equalsCDKTemplate(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../infra/cdk/template.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := localstack.Files.ReadFile("template.golden.json"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("infra/cdk/template.golden.json differs from localstack/template.golden.json; make the CDK file a "+
			"symbolic link: %v", err)
	}
}

func TestDev_applicationOrPythonIsMissing_isNamed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(cli.CodeError, "create one with perdure init", "dev", t.TempDir())
	h.env["PYTHON"] = "no-such-python"
	h.wantError(cli.CodeError, "Python 3.10 or later", "dev", "../..")
}

func TestVersion_printsBuildInformation(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("version", "--json")
	var v development.VersionInfo
	if err := json.Unmarshal(h.out.Bytes(), &v); err != nil || v.Version == "" || v.Go == "" || v.Platform == "" {
		t.Errorf("%v: %s", err, h.out.String())
	}
	if out := h.mustRun("version"); out[:8] != "perdure " {
		t.Error(out)
	}
}

// The wait command prints its progress only in an interactive terminal.
func TestWait_interactiveTerminal_printsProgress(t *testing.T) {
	t.Parallel()
	for interactive, want := range map[bool]string{
		true:  "perdure: one is Pending after 10.0s\nperdure: one is Pending after 20.0s\n",
		false: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			h := setup(t)
			h.interactive = interactive
			h.mustRun("start", "hello", "--id", "one")
			time.AfterFunc(25*time.Second, func() { h.Append("one", completed(`"hello"`)) })
			h.mustRun("wait", "one")
			if got := h.err.String(); got != want {
				t.Errorf("attended %v: %q, want %q", interactive, got, want)
			}
		})
	}
}
