package main

import (
	"fmt"
	"sync"
	"time"
)

// unattendedEvery is how often a long call says in the log of a job how far it has come. A job that says nothing for ten minutes may be taken for one
// that hangs.
const unattendedEvery = time.Minute

// pace tells how far a long call has come while it lasts: a person every ten seconds, the log of a job every minute.
type pace struct {
	mu      sync.Mutex
	reached string
	waits   string // for what; empty: for nothing
	end     func()
}

// startPace begins to tell. The pace must be ended, which waits until nothing more is told.
func startPace(c *command) *pace {
	every := unattendedEvery
	if c.attended {
		every = progressEvery
	}
	p, ended := &pace{}, make(chan struct{})
	ticks, stop := c.ticker(every)
	var telling sync.WaitGroup
	telling.Go(func() {
		for {
			select {
			case <-ticks:
				fmt.Fprintln(c.err, "perdure: "+oneLine(p.text()))
			case <-ended:
				return
			}
		}
	})
	p.end = func() {
		stop()
		close(ended)
		telling.Wait()
	}
	return p
}

// at says what is reached.
func (p *pace) at(reached string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = reached
}

// waitsFor says why it does not go on; nil is that it does.
func (p *pace) waitsFor(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits = ""; err == nil {
		return
	}
	p.waits = "; retrying after " + err.Error()
}

func (p *pace) waiting() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits
}

func (p *pace) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached + p.waits
}

// newTicker is the ticker of a command outside of tests.
func newTicker(every time.Duration) (ticks <-chan time.Time, stop func()) {
	t := time.NewTicker(every)
	return t.C, t.Stop
}
