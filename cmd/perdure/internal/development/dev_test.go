package development

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/perdure/perdure/localstack"
)

// Users of other modules get the same local AWS as this checkout: all files, and a new directory after each change.
func TestUnpack_concurrentCalls_writeAllFilesOnce(t *testing.T) {
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
		want, missing := fs.ReadFile(os.DirFS("../../../../localstack"), name)
		if err != nil || missing != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the checkout: %v, %v", name, err, missing)
		}
	}
	other, err := unpack(fstest.MapFS{"local.py": {Data: []byte("pass")}}, cache)
	if err != nil || other == dirs[0] {
		t.Errorf("other files are in %s, %v", other, err)
	}
}
