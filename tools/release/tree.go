package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// tree has the regular files of a repository by path. Symbolic links are not part of Go modules.
type tree map[string][]byte

// readTree reads the files of a working tree that Git tracks or would add.
func readTree(ctx context.Context, root string) (tree, error) {
	list, err := git(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files := tree{}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		file := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(file) //nolint:gosec // a file of this repository
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted but not committed, or a link
		}
		if err != nil {
			return nil, fmt.Errorf("read the working tree: %w", err)
		}
		if files[name], err = os.ReadFile(file); err != nil { //nolint:gosec // a file of this repository
			return nil, fmt.Errorf("read the working tree: %w", err)
		}
	}
	return files, nil
}

// git runs a Git command in a directory and returns its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	args = append([]string{"-C", dir}, args...)
	return output(exec.CommandContext(ctx, "git", args...)) //nolint:gosec // the commands of this program
}

// output runs a command and returns its standard output. The error has the standard error.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

// file is a file of a module, as package zip reads it.
type file struct {
	name    string
	content []byte
}

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return fileInfo{f}, nil }
func (f file) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.content)), nil }

// fileInfo describes a file. Its times and permissions are not part of a module.
type fileInfo struct{ file file }

func (i fileInfo) Name() string     { return filepath.Base(i.file.name) }
func (i fileInfo) Size() int64      { return int64(len(i.file.content)) }
func (fileInfo) Mode() fs.FileMode  { return 0o644 }
func (fileInfo) ModTime() time.Time { return time.Time{} }
func (fileInfo) IsDir() bool        { return false }
func (fileInfo) Sys() any           { return nil }
