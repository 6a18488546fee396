package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"syscall"
)

// Restate is a Restate server with all roles in one process and one partition.
type Restate struct {
	*Process

	// Ingress and Admin are URLs. Service is a free address for the handlers.
	Ingress, Admin, Service string
}

// StartRestate starts a server. node is the directory of the npm packages.
func StartRestate(ctx context.Context, node string) (*Restate, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	n, err := ports(ctx, 4)
	if err != nil {
		return nil, err
	}
	at := func(i int) string { return "127.0.0.1:" + strconv.Itoa(n[i]) }
	program := filepath.Join(node, "node_modules", "@restatedev", "restate-server-linux-x64", "bin", "restate-server")
	p, err := start(dir, options{stop: syscall.SIGTERM, stderr: io.Discard, env: []string{
		"RESTATE_BIND_ADDRESS=" + at(0), "RESTATE_ADVERTISED_ADDRESS=http://" + at(0),
		"RESTATE_INGRESS__BIND_ADDRESS=" + at(1),
		"RESTATE_ADMIN__BIND_ADDRESS=" + at(2), "RESTATE_DISABLE_TELEMETRY=true", "RESTATE_LOG_FILTER=error",
		"DO_NOT_TRACK=1",
	}}, program, "--no-logo", "--listen-mode", "tcp", "--node-name", "bench", "--base-dir", dir,
		"--default-num-partitions", "1")
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, p.stdout) }() // until it ends
	r := &Restate{Process: p, Ingress: "http://" + at(1), Admin: "http://" + at(2), Service: at(3)}
	return r, p.waitReady(ctx, func(ctx context.Context) error { return healthy(ctx, r.Admin+"/health") })
}

func healthy(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("servers: %s: %s", url, resp.Status)
	}
	return nil
}
