package servers

import (
	"context"
	"fmt"
	"io"
)

// Temporal is a server of Temporal: all services in one process, SQLite in memory.
type Temporal struct {
	*Process

	Address, Namespace string
}

// StartTemporal starts the program that is built of folder temporal.
func StartTemporal(_ context.Context, program string) (*Temporal, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	p, err := start(dir, options{stderr: io.Discard}, program)
	if err != nil {
		return nil, err
	}
	t := &Temporal{Process: p}
	if _, err := fmt.Fscan(p.stdout, &t.Address, &t.Namespace); err != nil {
		return t, fmt.Errorf("servers: temporal said no address: %w", err)
	}
	return t, nil
}
