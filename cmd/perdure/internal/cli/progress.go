package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

const (
	// ProgressInterval is the interval between progress lines on a terminal.
	ProgressInterval = 10 * time.Second
	// logInterval is the interval between progress lines in a log. Many job runners stop a job that prints nothing for
	// ten minutes.
	logInterval = time.Minute
)

// Progress prints the progress of a long operation on stderr at an interval.
type Progress struct {
	// Stop ends the output. It returns when no further line is printed.
	Stop func()

	mu    sync.Mutex
	text  string
	retry string // the retry that is in progress, or empty
}

// StartProgress starts to print progress lines. The caller must call Stop.
func (env *Env) StartProgress() *Progress {
	interval := logInterval
	if env.Interactive {
		interval = ProgressInterval
	}
	p, stopped := &Progress{}, make(chan struct{})
	ticks, stop := env.NewTicker(interval)
	var printing sync.WaitGroup
	printing.Go(func() {
		for {
			select {
			case <-ticks:
				fmt.Fprintln(env.Stderr, "perdure: "+term.OneLine(p.line()))
			case <-stopped:
				return
			}
		}
	})
	p.Stop = func() {
		stop()
		close(stopped)
		printing.Wait()
	}
	return p
}

// Set sets the text of the next line.
func (p *Progress) Set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// SetRetry sets the error after which a call is retried. nil means that no retry is in progress.
func (p *Progress) SetRetry(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retry = ""; err == nil {
		return
	}
	p.retry = "; retrying after " + err.Error()
}

// Retry describes the retry that is in progress. It is empty if there is none.
func (p *Progress) Retry() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.retry
}

func (p *Progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text + p.retry
}

// NewTicker returns a time.Ticker, for Env.NewTicker.
func NewTicker(every time.Duration) (ticks <-chan time.Time, stop func()) {
	t := time.NewTicker(every)
	return t.C, t.Stop
}
