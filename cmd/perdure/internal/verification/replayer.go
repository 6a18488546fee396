package verification

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/replaycheck"
)

const (
	// readyTimeout limits the time until a binary reports that it can replay.
	readyTimeout = 30 * time.Second
	// replyTimeout limits the time without a message during a replay. It is longer than the turn timeout, after which
	// the binary itself stops the replay.
	replyTimeout = time.Minute
	// maxOutput is the maximum number of bytes of a binary's output in an error.
	maxOutput = 4 << 10
)

// replayer replays histories one after another in a process of the binary. After a process has failed, it starts
// another one.
type replayer struct {
	binary  string
	process *replayProcess
}

// replay returns the verdict on a history. If the process ends during the replay, the verdict is a problem, because the
// deployed function would end as well.
func (p *replayer) replay(ctx context.Context, h *replaycheck.History, from source) (*replaycheck.Verdict, error) {
	if p.process == nil {
		started, err := startReplay(ctx, p.binary)
		if err != nil {
			return nil, err
		}
		p.process = started
	}

	verdict, err := p.process.replay(ctx, h, from)
	if err == nil {
		return verdict, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ended := p.process.stop()
	p.process = nil
	if tooMany, ok := errors.AsType[*tooManyRequestsError](err); ok {
		return &replaycheck.Verdict{Unread: tooMany.Error()}, nil
	}
	return &replaycheck.Verdict{Problem: fmt.Sprintf("replay in the binary failed: %v; its output: %s",
		errors.Join(err, ended.err), ended.output)}, nil
}

func (p *replayer) stop() {
	if p.process != nil {
		p.process.stop()
	}
}

// replayProcess is a process of the binary.
type replayProcess struct {
	cmd    *exec.Cmd
	in     io.Closer
	conn   *replaycheck.Conn
	idle   *time.Timer // kills the process
	kill   context.CancelFunc
	output *tail
}

// exitState describes the end of a process.
type exitState struct {
	err    error
	output string
}

// startReplay starts the binary and waits until it reports that it can replay. The binary receives no settings of a hub
// and no credentials.
func startReplay(ctx context.Context, binary string) (*replayProcess, error) {
	ctx, kill := context.WithCancel(ctx)
	p := &replayProcess{kill: kill, output: &tail{}}
	p.cmd = exec.CommandContext(ctx, binary)
	p.cmd.Env = replayEnvironment(os.Environ())
	p.cmd.Stderr = p.output
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		kill()
		return nil, fmt.Errorf("--binary: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		kill()
		return nil, fmt.Errorf("--binary: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		kill()
		if info, statErr := os.Stat(binary); statErr == nil && info.IsDir() {
			return nil, fmt.Errorf("--binary %s is a directory; build the orchestrator for this machine "+
				"and specify the file", binary)
		}
		return nil, fmt.Errorf("--binary %s: %w; build it for this machine", binary, err)
	}

	p.in, p.conn = in, replaycheck.NewCommandConn(out, in, p.output)
	p.idle = time.AfterFunc(readyTimeout, kill)
	var ready replaycheck.Reply
	if err := p.conn.Receive(&ready); err != nil {
		e := p.stop()
		return nil, fmt.Errorf("--binary %s cannot replay histories: %w; "+
			"use an orchestrator built with this release of perdure; its output: %s", binary, errors.Join(err, e.err),
			e.output)
	}
	if len(ready.Ready) == 0 {
		p.stop()
		return nil, fmt.Errorf("--binary %s has no orchestrations; "+
			"add them to the registry that it passes to lambdahandler.StartOrchestrator", binary)
	}
	return p, nil
}

// replay requests a verdict, and responds to the requests of the binary.
func (p *replayProcess) replay(ctx context.Context, h *replaycheck.History, from source) (*replaycheck.Verdict, error) {
	p.idle.Reset(replyTimeout)
	defer p.idle.Stop()
	if err := p.conn.Send(replaycheck.Request{Replay: h, Bucket: from.object != nil}); err != nil {
		return nil, err
	}
	for {
		var reply replaycheck.Reply
		if err := p.conn.Receive(&reply); err != nil {
			return nil, err
		}
		if reply.Verdict != nil {
			return reply.Verdict, nil
		}
		if err := p.respond(ctx, &reply, from); err != nil {
			return nil, err
		}
	}
}

// respond sends the requested document or object, or the reason why it is not available. It returns an error if ctx has
// ended, or if the binary makes too many requests.
func (p *replayProcess) respond(ctx context.Context, reply *replaycheck.Reply, from source) (err error) {
	var doc json.RawMessage
	var object []byte
	p.idle.Stop() // the limit does not include reads of the payload store
	switch {
	case reply.Wanted != nil:
		doc, err = from.document(*reply.Wanted)
	case reply.Object != "" && from.object != nil:
		object, err = from.object(reply.Object)
	default:
		return errors.New("unexpected reply from the binary")
	}
	if tooMany, ok := errors.AsType[*tooManyRequestsError](err); ok {
		return tooMany
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	p.idle.Reset(replyTimeout)
	switch {
	case err != nil:
		return p.conn.Send(replaycheck.Request{Problem: err.Error()})
	case object != nil:
		return p.conn.SendObject(object)
	default:
		return p.conn.Send(replaycheck.Request{Document: doc})
	}
}

// stop ends the process. Repeated calls have no effect.
func (p *replayProcess) stop() exitState {
	p.idle.Stop()
	_ = p.in.Close() // the process ends unless it hangs
	p.idle = time.AfterFunc(time.Second, p.kill)
	err := p.cmd.Wait()
	p.idle.Stop()
	p.kill()
	return exitState{err, p.output.text()}
}

// replayEnvironment returns the environment of a binary: without a hub, credentials and the variables of Lambda. A
// binary of a release without replays therefore has no hub to serve.
func replayEnvironment(environ []string) []string {
	kept := []string{replaycheck.Variable + "=" + replaycheck.Protocol}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		region := name == "AWS_REGION" || name == "AWS_DEFAULT_REGION"
		if !region && (strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "PERDURE_")) {
			continue
		}
		kept = append(kept, pair)
	}
	return kept
}

// tail is a writer that stores only the last bytes of an output.
type tail struct {
	mu   sync.Mutex
	last []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b[max(0, len(b)-maxOutput):]...)
	t.last = t.last[max(0, len(t.last)-maxOutput):]
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := bytes.TrimSpace(t.last); len(text) > 0 {
		return string(text)
	}
	return "nothing"
}
