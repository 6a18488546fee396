package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

const (
	modulePath = "github.com/perdure/perdure"
	goMod      = "go.mod"
	goSum      = "go.sum"
	license    = "LICENSE"
)

// published are the directories of the modules that a release tags. A module may require those before it.
var published = []string{"", "infra/cdk", "codec/kmskeys", "telemetry/perdureotel"}

// following are the directories of modules that are not published, but require a release in the tagged commit.
var following = []string{"examples/own-app"}

// internalModules are the directories of the modules that only this repository uses.
var internalModules = []string{"bench", "bench/servers/temporal", "tools"}

// packed is a module as a module proxy serves it.
type packed struct {
	module.Version

	dir     string
	goMod   []byte
	archive []byte
	sums    []string // the lines of a go.sum file
}

// tag returns the name of the Git tag of a module's version.
func (p packed) tag() string { return path.Join(p.dir, p.Version.Version) }

func pathOf(dir string) string { return path.Join(modulePath, dir) }

// releaseModules returns the published modules at a version, and the files that the commit of the release changes:
// nested modules require the release, and have no replace directive for a published module.
func releaseModules(files tree, version string) (all []packed, changed tree, err error) {
	if err := checkModules(files); err != nil {
		return nil, nil, err
	}
	changed = tree{}
	merged := maps.Clone(files)
	for _, dir := range slices.Concat(published, following) {
		rewritten, err := requireRelease(merged, dir, version, all)
		if err != nil {
			return nil, nil, fmt.Errorf("module %s: %w", pathOf(dir), err)
		}
		maps.Copy(changed, rewritten)
		maps.Copy(merged, rewritten)
		if slices.Contains(following, dir) {
			continue
		}
		p, err := pack(merged, dir, version)
		if err != nil {
			return nil, nil, fmt.Errorf("module %s: %w", pathOf(dir), err)
		}
		all = append(all, p)
	}
	return all, changed, nil
}

// checkModules returns an error if the tree has a module that is in none of the lists.
func checkModules(files tree) error {
	known := slices.Concat(published, following, internalModules)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		dir := strings.TrimSuffix(path.Dir(name), ".")
		if path.Base(name) == goMod && !strings.Contains(name, "testdata/") && !slices.Contains(known, dir) {
			return fmt.Errorf("module in %s is unknown: add it to a list in tools/release/modules.go", dir)
		}
	}
	return nil
}

// requireRelease returns the changed go.mod and go.sum of a module that requires other modules at a version.
func requireRelease(files tree, dir, version string, before []packed) (tree, error) {
	mod, err := modfile.Parse(goMod, files[path.Join(dir, goMod)], nil)
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	var sums []string
	for _, r := range slices.Clone(mod.Require) {
		i := slices.IndexFunc(before, func(p packed) bool { return p.Path == r.Mod.Path })
		if i < 0 && isOurs(r.Mod.Path) {
			return nil, fmt.Errorf("requires %s, which is not published before it", r.Mod.Path)
		}
		if i < 0 {
			continue
		}
		if err := mod.AddRequire(r.Mod.Path, version); err != nil {
			return nil, fmt.Errorf("require %s: %w", r.Mod.Path, err)
		}
		sums = append(sums, before[i].sums...)
	}
	for _, r := range slices.Clone(mod.Replace) {
		if !isOurs(r.Old.Path) {
			return nil, fmt.Errorf("replaces %s, which users of the module would not", r.Old.Path)
		}
		if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, fmt.Errorf("drop the replacement of %s: %w", r.Old.Path, err)
		}
	}
	if len(sums) == 0 {
		return tree{}, nil
	}
	mod.Cleanup()
	text, err := mod.Format()
	if err != nil {
		return nil, fmt.Errorf("write go.mod: %w", err)
	}
	sumFile := path.Join(dir, goSum)
	return tree{path.Join(dir, goMod): text, sumFile: addSums(files[sumFile], sums)}, nil
}

func isOurs(modPath string) bool {
	return modPath == modulePath || strings.HasPrefix(modPath, modulePath+"/")
}

// addSums adds lines to a go.sum file, in the order of the go command. They replace lines of our modules.
func addSums(sumFile []byte, sums []string) []byte {
	var lines []string
	for line := range strings.Lines(string(sumFile)) {
		if name, _, _ := strings.Cut(line, " "); !isOurs(name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	hashes := map[module.Version]string{}
	for _, line := range append(lines, sums...) {
		if f := strings.Fields(line); len(f) == 3 { //nolint:mnd // path, version and hash
			hashes[module.Version{Path: f[0], Version: f[1]}] = f[2]
		}
	}
	sorted := slices.Collect(maps.Keys(hashes))
	module.Sort(sorted)
	var b bytes.Buffer
	for _, v := range sorted {
		fmt.Fprintf(&b, "%s %s %s\n", v.Path, v.Version, hashes[v])
	}
	return b.Bytes()
}

// pack creates the archive of a module like the go command: without nested modules, and with the repository's license
// if the module has none.
func pack(files tree, dir, version string) (packed, error) {
	p := packed{Version: module.Version{Path: pathOf(dir), Version: version}, dir: dir}
	var content []modzip.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		within, ok := strings.CutPrefix(name, dir+"/")
		if dir == "" {
			within, ok = name, true
		}
		if ok {
			content = append(content, file{within, files[name]})
		}
	}
	if _, ok := files[path.Join(dir, license)]; !ok {
		content = append(content, file{license, files[license]})
	}
	if len(files[license]) == 0 {
		return p, errors.New("the repository has no LICENSE")
	}
	var b bytes.Buffer
	if err := modzip.Create(&b, p.Version, content); err != nil {
		return p, fmt.Errorf("create the archive: %w", err)
	}
	p.archive, p.goMod = b.Bytes(), files[path.Join(dir, goMod)]
	var err error
	p.sums, err = p.hash()
	return p, err
}

// hash returns the lines of a go.sum file.
func (p packed) hash() ([]string, error) {
	r, err := zip.NewReader(bytes.NewReader(p.archive), int64(len(p.archive)))
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	names := make([]string, len(r.File))
	for i, f := range r.File {
		names[i] = f.Name
	}
	sum, err := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return r.Open(name) })
	if err != nil {
		return nil, fmt.Errorf("hash the archive: %w", err)
	}
	modSum, err := dirhash.Hash1([]string{goMod}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(p.goMod)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("hash go.mod: %w", err)
	}
	line := p.Path + " " + p.Version.Version
	return []string{line + " " + sum, line + "/" + goMod + " " + modSum}, nil
}
