// Package peers has the engines that are measured: a file each.
package peers

import (
	"context"
	"errors"
	"strings"

	"github.com/perdure/perdure/bench/workload"
)

// Peer is an engine, and how it is run here.
type Peer struct {
	Name    string
	Version string
	// Where says what its store is, and in which process.
	Where string
	// Server is that its store is a server behind a socket; otherwise it lies in the memory of the process that does the work.
	Server bool
	// Cannot says of what it has no way to express, why.
	Cannot map[workload.Kind]string
	// Open starts it, with the servers that it needs, from the folder into which they were installed.
	Open func(ctx context.Context, folder string) (*Opened, error)
}

// Opened is an engine at work.
type Opened struct {
	workload.Engine

	// Servers are the processes that it needs besides this one.
	Servers []int

	stops []func() error
}

// Close ends the engine and its servers.
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

// needs notes a server, which is stopped with the engine.
func (o *Opened) needs(p process) {
	o.Servers = append(o.Servers, p.PID())
	o.stops = append(o.stops, p.Stop)
}

// failed closes what was opened before an error.
func (o *Opened) failed(err error) (*Opened, error) { return nil, errors.Join(err, o.Close()) }

// All are the peers, this engine first.
func All() []Peer {
	return []Peer{
		perdureInMemory(), perdureOnMinistack(),
		goWorkflows(), durableTask(), temporal(), restatePeer(), dbosPeer(), lambda(),
	}
}

// Names are the names of the peers, for a message.
func Names() string {
	var names []string
	for _, p := range All() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
