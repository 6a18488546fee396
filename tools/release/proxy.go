package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
)

// writeProxy writes modules to a directory in the layout of a module proxy.
func writeProxy(dir string, all []packed, committed time.Time) error {
	for _, p := range all {
		escaped, err := module.EscapePath(p.Path)
		if err != nil {
			return fmt.Errorf("write the module proxy: %w", err)
		}
		version := p.Version.Version
		info, err := json.Marshal(struct {
			Version string    `json:"Version"`
			Time    time.Time `json:"Time"`
		}{version, committed.UTC()})
		if err != nil {
			return fmt.Errorf("write the module proxy: %w", err)
		}
		at := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
		for name, content := range map[string][]byte{
			"list": []byte(version + "\n"), version + ".info": info,
			version + ".mod": p.goMod, version + ".zip": p.archive,
		} {
			if err := writeFile(filepath.Join(at, name), content); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFile writes a file and creates its directory.
func writeFile(name string, content []byte) error {
	const dirMode, fileMode = 0o755, 0o644
	if err := os.MkdirAll(filepath.Dir(name), dirMode); err != nil { //nolint:gosec // as readable as the source
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(name, content, fileMode); err != nil { //nolint:gosec // as readable as the source
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
