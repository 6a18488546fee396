// Package peers contains the measured engines, one in each file.
package peers

import (
	"context"
	"errors"
	"strings"

	"github.com/perdure/perdure/bench/workload"
)

// Peer is an engine and its setup.
type Peer struct {
	Name    string
	Version string
	// Where describes the store and its process.
	Where string
	// Server is true if the store is a server behind a socket. Otherwise the store is in the memory of the process that
	// does the work.
	Server bool
	// Cannot gives the reason for each orchestration that the engine does not support.
	Cannot map[workload.Kind]string
	// Open starts the engine and the servers that it needs. The servers are installed in folder.
	Open func(ctx context.Context, folder string) (*Opened, error)
}

// Opened is a running engine.
type Opened struct {
	workload.Engine

	// Servers are the IDs of the engine's other processes.
	Servers []int

	stops []func() error
}

// Close stops the engine and its servers.
func (o *Opened) Close() error {
	var errs []error
	if o.Engine != nil {
		errs = append(errs, o.Engine.Close())
	}
	for _, stop := range o.stops {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// process is a server that an engine needs.
type process interface {
	PID() int
	Stop() error
}

// addServer adds a server that Close stops.
func (o *Opened) addServer(p process) {
	o.Servers = append(o.Servers, p.PID())
	o.stops = append(o.stops, p.Stop)
}

// failed stops the engine and its servers after an error.
func (o *Opened) failed(err error) (*Opened, error) { return nil, errors.Join(err, o.Close()) }

// All returns the peers, perdure first.
func All() []Peer {
	return []Peer{
		perdureInMemory(), perdureOnMinistack(),
		goWorkflows(), durableTask(), temporal(), restatePeer(), dbosPeer(), lambda(),
	}
}

// Names returns the names of the peers for a message.
func Names() string {
	var names []string
	for _, p := range All() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
