package servers

import (
	"context"
	"fmt"
	"io"
)

// Temporal is a Temporal server with all services in one process and SQLite in memory.
type Temporal struct {
	*Process

	Address, Namespace string
}

// StartTemporal starts the program, which is built from directory temporal.
func StartTemporal(_ context.Context, program string) (*Temporal, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	p, err := start(dir, options{stderr: io.Discard}, program)
	if err != nil {
		return nil, err
	}
	t := &Temporal{Process: p}
	if _, err := fmt.Fscan(p.stdout, &t.Address, &t.Namespace); err != nil {
		return t, fmt.Errorf("servers: read the address of temporal: %w", err)
	}
	return t, nil
}
