package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

const testVersion = "v0.1.0"

// sample is a small repository with all published modules.
func sample() tree {
	nested := func(dir, more string) []byte {
		return []byte("module " + modulePath + "/" + dir + "\n\ngo 1.26.0\n\n" + more)
	}
	own := "require " + modulePath + " v0.0.0\n\nreplace " + modulePath + " => ../..\n"
	use := []byte("package p\n\nimport _ \"" + modulePath + "\"\n")
	return tree{
		"LICENSE": []byte("terms"), "go.mod": []byte("module " + modulePath + "\n\ngo 1.26.0\n"),
		"perdure.go":                    []byte("// Package perdure is a sample.\npackage perdure\n\nfunc F() {}\n"),
		"internal/i/i.go":               []byte("package i\n\n// G does nothing.\nfunc G() {}\n"),
		"CHANGELOG.md":                  []byte("# Changelog\n\n## 0.1.0 (2026-11-29)\n\n- All.\n"),
		acceptedFile:                    []byte("# none\n"),
		"infra/cdk/go.mod":              nested("infra/cdk", ""),
		"infra/cdk/p.go":                []byte("package p\n"),
		"codec/kmskeys/go.mod":          nested("codec/kmskeys", own),
		"codec/kmskeys/go.sum":          nil,
		"codec/kmskeys/p.go":            use,
		"telemetry/perdureotel/go.mod":  nested("telemetry/perdureotel", own),
		"telemetry/perdureotel/go.sum":  nil,
		"telemetry/perdureotel/p.go":    use,
		"telemetry/perdureotel/LICENSE": []byte("its own"),
		"examples/own-app/go.mod": []byte("module example.com/own\n\ngo 1.26.0\n\nrequire (\n\t" + modulePath +
			" v0.0.0\n\t" + modulePath + "/infra/cdk v0.0.0\n)\n\nreplace (\n\t" + modulePath + " => ../..\n\t" +
			modulePath + "/infra/cdk => ../../infra/cdk\n)\n"),
		"examples/own-app/go.sum": nil,
		"examples/own-app/p.go":   append(use, "import _ \""+modulePath+"/infra/cdk\"\n"...),
	}
}

// repository writes and commits a tree in a new Git repository.
func repository(t *testing.T, files tree) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
		"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	} {
		t.Setenv(name, value)
	}
	mustGit(t, root, "init", "--quiet", "--initial-branch", "main")
	commitFiles(t, root, files)
	return root
}

func commitFiles(t *testing.T, root string, files tree) {
	t.Helper()
	for name, content := range files {
		if err := writeFile(filepath.Join(root, name), content); err != nil {
			t.Fatal(err)
		}
	}
	mustGit(t, root, "add", "--all")
	mustGit(t, root, "commit", "--quiet", "--message", "A change")
}

func mustGit(t *testing.T, root string, args ...string) string {
	t.Helper()
	out, err := git(t.Context(), root, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReleaseModules_nestedModules_requireReleaseWithoutReplace(t *testing.T) {
	t.Parallel()
	files := sample()
	all, changed, err := releaseModules(files, testVersion)
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range all {
		tags = append(tags, m.tag())
	}
	want := []string{"v0.1.0", "infra/cdk/v0.1.0", "codec/kmskeys/v0.1.0", "telemetry/perdureotel/v0.1.0"}
	if !slices.Equal(tags, want) {
		t.Errorf("got tags %q, want %q", tags, want)
	}
	for name, requirements := range map[string]int{
		"codec/kmskeys/go.mod": 1, "telemetry/perdureotel/go.mod": 1, "examples/own-app/go.mod": 2,
	} {
		mod, err := modfile.Parse(name, changed[name], nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(mod.Replace) > 0 || len(mod.Require) != requirements || mod.Require[0].Mod.Version != testVersion {
			t.Errorf("%s: got\n%s", name, changed[name])
		}
		sums := strings.Count(string(changed[filepath.Dir(name)+"/go.sum"]), "h1:")
		if sums != 2*requirements {
			t.Errorf("%s: got %d hashes, want %d", name, sums, 2*requirements)
		}
	}

	// The release of the tagged commit is the same.
	maps.Copy(files, changed)
	again, _, err := releaseModules(files, testVersion)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		if !slices.Equal(again[i].sums, all[i].sums) {
			t.Errorf("%s: got hashes %q in the tagged commit, want %q", all[i].Path, again[i].sums, all[i].sums)
		}
	}
}

func TestReleaseModules_unusableModule_isError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, content, want string
	}{
		"in no list": {"other/go.mod", "module " + modulePath + "/other\n", "module in other is unknown"},
		"replacement of another module": {
			"infra/cdk/go.mod", "module " + modulePath + "/infra/cdk\n\nreplace example.com/a => ../a\n",
			"replaces example.com/a",
		},
		"requires a module that is published later": {
			"infra/cdk/go.mod",
			"module " + modulePath + "/infra/cdk\n\nrequire " + modulePath + "/codec/kmskeys v0.0.0\n",
			"requires " + modulePath + "/codec/kmskeys, which is not published before it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := sample()
			files[c.file] = []byte(c.content)
			if _, _, err := releaseModules(files, testVersion); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %s", err, c.want)
			}
		})
	}
}

// directly runs the go command as a user of the tags of a repository.
func directly(t *testing.T, root, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=direct", "GONOSUMDB="+modulePath, "GOFLAGS=-modcacherw", "GOWORK=off",
		"GOMODCACHE="+filepath.Join(t.TempDir(), "mod"), "GIT_ALLOW_PROTOCOL=file", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://"+root+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+modulePath)
	out, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The go command computes the same hashes from the tags as the release did, so that nested modules build at their tags.
func TestTagRelease_tags_resolveWithGoCommand(t *testing.T) {
	files := sample()
	root := repository(t, files)
	before := mustGit(t, root, "rev-parse", "HEAD")
	var out bytes.Buffer
	if err := tagRelease(t.Context(), &out, root, testVersion); err != nil {
		t.Fatal(err)
	}
	want := "git push --atomic origin HEAD v0.1.0 infra/cdk/v0.1.0 codec/kmskeys/v0.1.0"
	if !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %s", out.String(), want)
	}
	if got := mustGit(t, root, "rev-parse", "v0.1.0~1"); got != before {
		t.Errorf("the tag is on %s, want a commit after %s", got, before)
	}

	mustGit(t, root, "checkout", "--quiet", "v0.1.0")
	for _, dir := range []string{"codec/kmskeys", "telemetry/perdureotel", "examples/own-app"} {
		directly(t, root, filepath.Join(root, dir), "list", "-mod=readonly", "-deps", "./...")
	}
	released, err := loadSource(t.Context(), root, testVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range released.modules {
		var got struct {
			Sum      string `json:"Sum"`
			GoModSum string `json:"GoModSum"`
		}
		text := directly(t, root, t.TempDir(), "mod", "download", "-json", m.Path+"@"+testVersion)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(m.sums[0], got.Sum) || !strings.HasSuffix(m.sums[1], got.GoModSum) || got.Sum == "" {
			t.Errorf("%s: got hashes %+v, want %q", m.Path, got, m.sums)
		}
	}

	// On main, the modules use the code beside them and require the release.
	mustGit(t, root, "checkout", "--quiet", "main")
	mod, err := os.ReadFile(filepath.Join(root, "codec/kmskeys/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	required := bytes.Replace(files["codec/kmskeys/go.mod"], []byte("v0.0.0"), []byte("v0.1.0"), 1)
	if !bytes.Equal(mod, required) {
		t.Errorf("got go.mod\n%s\nwant\n%s", mod, required)
	}
	commitFiles(t, root, tree{changelog: []byte("## 0.1.1 (2026-12-01)\n\n- A fix.\n\n" + string(files[changelog]))})
	if err := tagRelease(t.Context(), &out, root, "v0.1.1"); err != nil {
		t.Errorf("next release: %v", err)
	}
}

func TestTagRelease_notReady_changesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		version, changelog, dirty, want string
	}{
		"no section":          {"v0.2.0", "", "", "has no section for v0.2.0"},
		"no date":             {testVersion, "## 0.1.0 (unreleased)\n", "", "with the date of the release"},
		"not a version":       {"0.1.0", "", "", "is not a version"},
		"uncommitted changes": {testVersion, "", "perdure.go", "commit or remove these changes first"},
	} {
		t.Run(name, func(t *testing.T) {
			files := sample()
			if c.changelog != "" {
				files[changelog] = []byte(c.changelog)
			}
			root := repository(t, files)
			before := mustGit(t, root, "rev-parse", "HEAD")
			if c.dirty != "" {
				if err := os.Remove(filepath.Join(root, c.dirty)); err != nil {
					t.Fatal(err)
				}
			}
			err := tagRelease(t.Context(), &bytes.Buffer{}, root, c.version)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %s", err, c.want)
			}
			if after := mustGit(t, root, "rev-parse", "HEAD"); after != before || mustGit(t, root, "tag") != "" {
				t.Error("the command has changed the repository")
			}
		})
	}
}

func TestNotesOf_severalVersions_returnsSection(t *testing.T) {
	t.Parallel()
	text := "# Changelog\n\n## 0.2.0 (unreleased)\n\n- B.\n\n## 0.1.0 (2026-11-29)\n\nYou can:\n\n### A\n\n- A.\n"
	got, err := notesOf(text, testVersion)
	if want := "You can:\n\n### A\n\n- A.\n"; got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestCheckAPI_changeSinceRelease_isReportedUnlessAccepted(t *testing.T) {
	root := repository(t, sample())
	expect := func(result, failure string) {
		t.Helper()
		got, err := checkAPI(t.Context(), root)
		if failure == "" && (err != nil || got != result) {
			t.Errorf("got %q, %v; want %q", got, err, result)
		}
		if failure != "" && (err == nil || err.Error() != failure) {
			t.Errorf("got error %v, want %s", err, failure)
		}
	}
	expect("no earlier release, 0 accepted changes", "")
	if err := tagRelease(t.Context(), &bytes.Buffer{}, root, testVersion); err != nil {
		t.Fatal(err)
	}
	commitFiles(t, root, tree{
		"internal/i/i.go": []byte("package i\n"), "g.go": []byte("package perdure\n\nfunc H() {}\n"),
	})
	expect("compared with v0.1.0, 0 accepted changes", "")

	commitFiles(t, root, tree{"perdure.go": []byte("package perdure\n\nfunc F(int) {}\n")})
	const change = "perdure: F: changed from func() to func(int)"
	expect("", "incompatible with v0.1.0: "+change)
	commitFiles(t, root, tree{acceptedFile: []byte(change + "\n")})
	expect("compared with v0.1.0, 1 accepted changes", "")
	commitFiles(t, root, tree{acceptedFile: []byte(change + "\nperdure: G: removed\n")})
	expect("", acceptedFile+" has a change that does not exist: perdure: G: removed")
}

func TestClassify_text_returnsLicensesOrError(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := classify(text); err != nil || !slices.Equal(got, []string{"Apache-2.0"}) {
		t.Errorf("got %q, %v; want Apache-2.0", got, err)
	}
	if got, err := classify([]byte("You may look at this code on Sundays.")); err == nil {
		t.Errorf("got %q for an unknown license, want an error", got)
	}
}

func TestDependency_licenseFiles_areClassified(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files tree
		want  string // of the licenses, or the error
	}{
		"license and notice": {tree{"LICENSE.txt": text, "NOTICE": []byte("by all of us")}, "Apache-2.0"},
		"summary beside it":  {tree{"LICENSE": text, "LICENSE-SUMMARY": []byte("see the others")}, "Apache-2.0"},
		"of a package":       {tree{"pkg/COPYING": text}, "Apache-2.0"},
		"of a package that is not imported": {
			tree{"other/LICENSE": text}, "example.com/m has no license file",
		},
		"unknown": {tree{"LICENSE": []byte("You may look at this code on Sundays.")}, "unknown license"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.files["pkg/p.go"] = []byte("package pkg\n")
			for file, content := range c.files {
				if err := writeFile(filepath.Join(dir, file), content); err != nil {
					t.Fatal(err)
				}
			}
			d := &dependency{path: "example.com/m", dir: dir, folders: map[string]struct{}{
				dir: {}, filepath.Join(dir, "pkg"): {},
			}}
			ids, err := d.licenses()
			if got := strings.Join(ids, ", "); got != c.want && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %q, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestReadGoReleaser_configuration_isStrict(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../" + goReleaserFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readGoReleaser(text)
	if err != nil || len(c.Builds[0].GoOS)*len(c.Builds[0].GoArch) != 6 {
		t.Errorf("got %+v, %v; want six binaries", c.Builds, err)
	}
	for old, changed := range map[string]string{
		"mod_timestamp": "mod_time", "linux, darwin, windows": "linux, windows", "version: 2": "version: 1",
	} {
		if _, err := readGoReleaser(bytes.Replace(text, []byte(old), []byte(changed), 1)); err == nil {
			t.Errorf("got no error with %q", changed)
		}
	}
}

func TestDescribeBinary_modules_arePackagesWithLicenses(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: modulePath, Version: testVersion},
		Deps: []*debug.Module{
			{Path: "example.com/a_b", Version: "v1.0.0+incompatible", Sum: "h1:x"},
			{Path: "example.com/c", Version: "v2.0.0"},
		},
		Settings: []debug.BuildSetting{
			{Key: "GOOS", Value: "linux"},
			{Key: "GOARCH", Value: "arm64"},
			{Key: "vcs.time", Value: "2026-11-29T00:00:00Z"},
		},
	}
	licenses := listedLicenses("| module | licenses | imported by |\n|---|---|---|\n" +
		"| `example.com/a_b` | Apache-2.0, MIT | perdure |\n")
	d := describeBinary("perdure", []byte("binary"), info, licenses)
	var got []string
	for _, p := range d.Packages {
		got = append(got, p.ID+" "+p.LicenseConcluded+" "+p.ExternalRefs[0].Locator)
	}
	want := []string{
		"SPDXRef-Binary Apache-2.0 pkg:golang/" + modulePath + "@v0.1.0",
		"SPDXRef-Package-0-stdlib BSD-3-Clause pkg:golang/stdlib@1.26.8",
		"SPDXRef-Package-1-example.com-a-b Apache-2.0 AND MIT pkg:golang/example.com/a_b@v1.0.0%2Bincompatible",
		"SPDXRef-Package-2-example.com-c NOASSERTION pkg:golang/example.com/c@v2.0.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got packages %q, want %q", got, want)
	}
	if len(d.Relationships) != len(want) || d.CreationInfo.Created != "2026-11-29T00:00:00Z" {
		t.Errorf("got %d relationships, created %s", len(d.Relationships), d.CreationInfo.Created)
	}
}

func TestWriteProxy_modules_haveLayoutOfProxy(t *testing.T) {
	t.Parallel()
	all, _, err := releaseModules(sample(), testVersion)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := writeProxy(dir, all, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "github.com/perdure/perdure/codec/kmskeys/@v")
	info, err := os.ReadFile(filepath.Join(at, "v0.1.0.info"))
	if want := `{"Version":"v0.1.0","Time":"1970-01-01T00:00:00Z"}`; err != nil || string(info) != want {
		t.Errorf("got %s, %v; want %s", info, err, want)
	}
	for _, name := range []string{"list", "v0.1.0.mod", "v0.1.0.zip"} {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Error(err)
		}
	}
}
