package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/localstack"
)

// The cloud that a user of another module gets is the checkout's: each file, and each change of one in a folder of its own.
func TestTheLocalCloudIsUnpackedWholeAndOnce(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "perdure")
	dirs := make([]string, 8)
	var unpacking sync.WaitGroup
	for i := range dirs {
		unpacking.Go(func() {
			var err error
			if dirs[i], err = unpack(localstack.Files, cache); err != nil {
				t.Error(err)
			}
		})
	}
	unpacking.Wait()
	for _, dir := range dirs {
		if dir != dirs[0] {
			t.Errorf("%s, and %s", dir, dirs[0])
		}
	}
	there, err := os.ReadDir(cache)
	if err != nil || len(there) != 1 {
		t.Errorf("%v are in the cache, %v", there, err)
	}
	for _, name := range []string{"local.py", "ministack_server.py", "requirements.txt", "template.golden.json"} {
		got, err := os.ReadFile(filepath.Join(dirs[0], name))
		want, missing := fs.ReadFile(os.DirFS("../../localstack"), name)
		if err != nil || missing != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the checkout's: %v, %v", name, err, missing)
		}
	}
	other, err := unpack(fstest.MapFS{"local.py": {Data: []byte("pass")}}, cache)
	if err != nil || other == dirs[0] {
		t.Errorf("other files are in %s, %v", other, err)
	}
}

// The template that is embedded is the one that the CDK's tests write.
func TestTheEmbeddedTemplateIsTheStacks(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../infra/cdk/template.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := localstack.Files.ReadFile("template.golden.json"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("localstack/template.golden.json is another than infra/cdk/template.golden.json, which is to be a link to it: %v", err)
	}
}

func TestDevSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(exitError, "create one with perdure init", "dev", t.TempDir())
	h.env["PYTHON"] = "no-such-python"
	h.wantError(exitError, "Python 3.10 or later", "dev", "../..")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("version", "--json")
	var v versionInfo
	if err := json.Unmarshal(h.out.Bytes(), &v); err != nil || v.Version == "" || v.Go == "" || v.Platform == "" {
		t.Errorf("%v: %s", err, h.out.String())
	}
	if out := h.mustRun("version"); out[:8] != "perdure " {
		t.Error(out)
	}
}

// Only a person is shown that a wait lasts.
func TestAWaitShowsThatItLasts(t *testing.T) {
	t.Parallel()
	for attended, want := range map[bool]string{
		true:  "perdure: one is Pending after 10.0s\nperdure: one is Pending after 20.0s\n",
		false: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			h := setup(t)
			h.attended = attended
			h.mustRun("start", "hello", "--id", "one")
			time.AfterFunc(25*time.Second, func() { h.Append("one", completed(`"hello"`)) })
			h.mustRun("wait", "one")
			if got := h.err.String(); got != want {
				t.Errorf("attended %v: %q, want %q", attended, got, want)
			}
		})
	}
}
