package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const goReleaserFile = ".goreleaser.yaml"

// goReleaser has the fields of GoReleaser's configuration that this repository uses. Other fields are errors: a typo
// would otherwise show in a release only.
type goReleaser struct {
	Version int
	Project string `yaml:"project_name"`
	Git     struct {
		Ignore []string `yaml:"ignore_tags"`
	}
	Before   struct{ Hooks []string }
	Builds   []goReleaserBuild
	Archives []goReleaserArchive
	SBOMs    []goReleaserCommand `yaml:"sboms"`
	Checksum struct {
		Name string `yaml:"name_template"`
	}
	Signs     []goReleaserCommand
	Changelog struct{ Disable bool }
	Release   struct{ Prerelease string }
	Snapshot  struct {
		Version string `yaml:"version_template"`
	}
}

type goReleaserBuild struct {
	Main, Binary        string
	Env, Flags, LDFlags []string
	GoOS, GoArch        []string
	Timestamp           string `yaml:"mod_timestamp"`
}

type goReleaserArchive struct {
	Name      string `yaml:"name_template"`
	Formats   []string
	Overrides []struct {
		GoOS    string
		Formats []string
	} `yaml:"format_overrides"`
	Info  struct{ MTime string } `yaml:"builds_info"`
	Files []struct {
		Src   string
		Strip bool `yaml:"strip_parent"`
		Info  struct{ MTime string }
	}
}

// goReleaserCommand is a command that runs for artifacts.
type goReleaserCommand struct {
	Artifacts, Cmd, Signature string
	Documents, Args           []string
}

// readGoReleaser reads and checks GoReleaser's configuration.
func readGoReleaser(text []byte) (c goReleaser, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("read %s: %w", goReleaserFile, err)
	}
	if c.Version != 2 || len(c.Builds) != 1 { //nolint:mnd // the version of the format
		return c, fmt.Errorf("%s must have version 2 and one build", goReleaserFile)
	}
	if missing := slices.DeleteFunc(slices.Clone(systems), func(s string) bool {
		return slices.Contains(c.Builds[0].GoOS, s)
	}); len(missing) > 0 {
		return c, fmt.Errorf("%s does not build for %s", goReleaserFile, strings.Join(missing, ", "))
	}
	return c, nil
}

// isHost reports whether a binary runs on this machine.
func isHost(system, arch string) bool { return system == runtime.GOOS && arch == runtime.GOARCH }

// checkBinaries builds what GoReleaser would for the selected systems, and describes it with checksums and SPDX
// documents.
func checkBinaries(ctx context.Context, root, dir string, selects func(system, arch string) bool) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, goReleaserFile)) //nolint:gosec // a file of this repository
	if err != nil {
		return "", fmt.Errorf("read the configuration of GoReleaser: %w", err)
	}
	config, err := readGoReleaser(text)
	if err != nil {
		return "", err
	}
	texts := filepath.Join(dir, "THIRD_PARTY_LICENSES.txt")
	if err := writeLicenseTexts(ctx, root, texts); err != nil {
		return "", err
	}
	b := config.Builds[0]
	var names []string
	var sums bytes.Buffer
	for _, system := range b.GoOS {
		for _, arch := range b.GoArch {
			if !selects(system, arch) {
				continue
			}
			name := b.Binary + "_" + system + "_" + arch
			if err := checkBinary(ctx, root, filepath.Join(dir, name), b, system, arch); err != nil {
				return "", fmt.Errorf("%s/%s: %w", system, arch, err)
			}
			names = append(names, name, name+".spdx.json")
		}
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // just written
		if err != nil {
			return "", fmt.Errorf("compute the checksums: %w", err)
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	if err := writeFile(filepath.Join(dir, config.Checksum.Name), sums.Bytes()); err != nil {
		return "", err
	}
	built := len(names) / 2 //nolint:mnd // each has a document
	return fmt.Sprintf("%d build, with checksums, SPDX documents and license texts", built), nil
}

// checkBinary builds and checks the binary of a system.
func checkBinary(ctx context.Context, root, name string, b goReleaserBuild, system, arch string) error {
	args := slices.Concat([]string{"build", "-o", name}, b.Flags,
		[]string{"-ldflags=" + strings.Join(b.LDFlags, " "), b.Main})
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the flags of this repository
	cmd.Dir = root
	cmd.Env = slices.Concat(os.Environ(), b.Env, []string{"GOOS=" + system, "GOARCH=" + arch, "GOWORK=off"})
	if _, err := output(cmd); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read the build information: %w", err)
	}
	content, err := os.ReadFile(name) //nolint:gosec // just built
	if err != nil {
		return fmt.Errorf("read the binary: %w", err)
	}
	if bytes.Contains(content, []byte(root+string(filepath.Separator))) {
		return errors.New("the binary contains paths of this machine")
	}
	if err := writeSBOM(root, name, name+".spdx.json"); err != nil {
		return err
	}
	if err := checkSBOM(name+".spdx.json", len(info.Deps)); err != nil {
		return err
	}
	if !isHost(system, arch) {
		return nil
	}
	out, err := output(exec.CommandContext(ctx, name, "version"))
	if err == nil && !strings.HasPrefix(out, "perdure ") {
		err = fmt.Errorf("perdure version: got %q", out)
	}
	return err
}

// checkSBOM returns an error if a document lacks a package or the license of one.
func checkSBOM(name string, dependencies int) error {
	text, err := os.ReadFile(name) //nolint:gosec // just written
	if err != nil {
		return fmt.Errorf("read the SPDX document: %w", err)
	}
	var d spdxDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("read the SPDX document: %w", err)
	}
	const goAndMain = 2
	if len(d.Packages) != dependencies+goAndMain {
		return fmt.Errorf("the SPDX document has %d packages, want %d", len(d.Packages), dependencies+goAndMain)
	}
	for _, p := range d.Packages {
		if p.LicenseConcluded == spdxNoAssertion {
			return fmt.Errorf("the SPDX document has no license for %s", p.Name)
		}
	}
	return nil
}
