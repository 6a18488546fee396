package development

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/program"
	"github.com/perdure/perdure/localstack"
)

type devFlags struct {
	port      int
	instances []string
}

// Dev returns the command dev.
func Dev(env *cli.Env) *cobra.Command {
	f := devFlags{port: 8080}
	cmd := &cobra.Command{
		Use: "dev [DIR]", Short: "Run an application on a local AWS",
		Long: `Run an application on a local AWS, and redeploy it after each change.

DIR, by default the current directory, contains functions/orchestrator, worker, renewer and api, as written
by perdure init. A change is deployed within seconds, and instances continue. If a build fails, the
previous build continues to run. The command prints the logs of the functions. It also prints export lines
that select this hub in another terminal. Ctrl-C stops everything.

Requirements: Go, and Python 3.10 or later (PYTHON sets its path). No Docker and no AWS account. The first run
installs the local AWS into a virtual environment in your cache directory.`,
		Example: `  perdure dev
  perdure dev ../orders --port 0
  perdure dev --instance order-7
  go run github.com/perdure/perdure/cmd/perdure@latest dev`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), env, directory(args))
		},
	}
	cmd.Flags().IntVar(&f.port, "port", f.port, "port of the HTTP API on 127.0.0.1, 0 for a free port")
	cmd.Flags().StringArrayVar(&f.instances, "instance", nil,
		"ID of the instance whose logs are printed; repeatable (default: all)")
	return cmd
}

// atMostOne rejects a second argument.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("unexpected argument %q; see %s --help", args[1], cmd.CommandPath())
	}
	return nil
}

// directory returns the directory in the arguments, by default the current one.
func directory(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// run runs the application in a directory until ctx ends.
func (f devFlags) run(ctx context.Context, env *cli.Env, app string) error {
	app, err := filepath.Abs(app)
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	if _, err := os.Stat(filepath.Join(app, "functions")); err != nil {
		return fmt.Errorf("%s has no functions directory; specify an application directory, "+
			"or create one with perdure init", app)
	}
	python, err := exec.LookPath(cmp.Or(env.Getenv("PYTHON"), "python3"))
	if err != nil {
		return errors.New("python3 not found in PATH; install Python 3.10 or later " +
			"from https://www.python.org/downloads, or set PYTHON to its path")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	scripts, err := unpack(localstack.Files, filepath.Join(cache, "perdure"))
	if err != nil {
		return err
	}

	p := program.New(ctx, python, os.Environ())
	p.Args = append(p.Args, filepath.Join(scripts, "local.py"), "up", "--reload", "--app", app,
		"--hub", env.HubName, "--port", strconv.Itoa(f.port))
	for _, id := range f.instances {
		p.Args = append(p.Args, "--instance", id)
	}
	p.Stdout = env.Stdout
	p.Stderr = env.Stderr
	return program.Run(ctx, p, "local AWS")
}

// unpack writes files to a directory of the cache and returns its path. The name of the directory is a hash of the
// files, so unpack reuses an existing directory. A rename makes the write atomic, because several processes can call
// unpack concurrently.
func unpack(files fs.FS, cache string) (string, error) {
	name, err := fingerprint(files)
	if err != nil {
		return "", fmt.Errorf("unpack: %w", err)
	}
	dir := filepath.Join(cache, "local-"+name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}

	if err := os.MkdirAll(cache, 0o750); err != nil {
		return "", fmt.Errorf("unpack: %w", err)
	}
	unfinished, err := os.MkdirTemp(cache, "unfinished-")
	if err != nil {
		return "", fmt.Errorf("unpack: %w", err)
	}
	defer os.RemoveAll(unfinished) //nolint:errcheck // best effort; after the rename it does not exist
	if err := os.CopyFS(unfinished, files); err != nil {
		return "", fmt.Errorf("unpack: %w", err)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		if _, statErr := os.Stat(dir); statErr == nil { // another process was faster
			return dir, nil
		}
		return "", fmt.Errorf("unpack: %w", err)
	}
	return dir, nil
}

// fingerprint returns a hash of the names and the content of files.
func fingerprint(files fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(files, path)
		fmt.Fprintf(h, "%s %d\n", path, len(b))
		h.Write(b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:12], err
}
