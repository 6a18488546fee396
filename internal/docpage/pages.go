package docpage

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// All returns the pages below a folder by path. It skips test data and installed packages.
func All(folder string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() &&
			(name == "node_modules" || name == "testdata" || strings.HasPrefix(name, ".") && name != ".."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		page, err := os.ReadFile(path) //nolint:gosec // the path is from a test
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		found[path] = string(page)
		return nil
	})
	if err == nil && len(found) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("docpage: pages of %s: %w", folder, err)
	}
	return found, nil
}
