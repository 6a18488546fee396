package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// unattendedEvery is how often a long call says in the log of a job how far it has come. A job that says nothing for ten minutes may be taken for one
// that hangs.
const unattendedInterval = time.Minute

// pace tells how far a long call has come while it lasts: a person every ten seconds, the log of a job every minute.
type Progress struct {
	mu      sync.Mutex
	reached string
	retry   string // for what; empty: for nothing
	Stop    func()
}

// startPace begins to tell. The pace must be ended, which waits until nothing more is told.
func (c *Env) StartProgress() *Progress {
	every := unattendedInterval
	if c.Interactive {
		every = ProgressInterval
	}
	p, ended := &Progress{}, make(chan struct{})
	ticks, stop := c.NewTicker(every)
	var telling sync.WaitGroup
	telling.Go(func() {
		for {
			select {
			case <-ticks:
				fmt.Fprintln(c.Stderr, "perdure: "+term.OneLine(p.text()))
			case <-ended:
				return
			}
		}
	})
	p.Stop = func() {
		stop()
		close(ended)
		telling.Wait()
	}
	return p
}

// at says what is reached.
func (p *Progress) Set(reached string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = reached
}

// waitsFor says why it does not go on; nil is that it does.
func (p *Progress) SetRetry(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retry = ""; err == nil {
		return
	}
	p.retry = "; retrying after " + err.Error()
}

func (p *Progress) Retry() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.retry
}

func (p *Progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached + p.retry
}

// newTicker is the ticker of a command outside of tests.
func NewTicker(every time.Duration) (ticks <-chan time.Time, stop func()) {
	t := time.NewTicker(every)
	return t.C, t.Stop
}

// progressEvery is the interval between progress lines on a terminal.
const ProgressInterval = 10 * time.Second
