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
	// readyPatience is how long a binary may take to say that it can replay.
	readyTimeout = 30 * time.Second
	// replyPatience is how long it may say nothing while it replays: far longer than a turn may take, by which replay gives up itself.
	replyTimeout = time.Minute
	// lastWords is how much is kept of what a binary prints.
	maxOutput = 4 << 10
)

// rehearser has a process of the binary replay one history after the other, and another one when that ends.
type replayer struct {
	binary  string
	process *replayProcess
}

// replay returns what the code makes of a history. A process that ends over it is a verdict, too: it would end in the function.
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
	if asksOn, ok := errors.AsType[*tooManyRequestsError](err); ok {
		return &replaycheck.Verdict{Unread: asksOn.Error()}, nil
	}
	return &replaycheck.Verdict{Problem: fmt.Sprintf("replay in the binary failed: %v; its output: %s", errors.Join(err,
		ended.err), ended.printed)}, nil
}

func (p *replayer) stop() {
	if p.process != nil {
		p.process.stop()
	}
}

// rehearsing is a process of the binary.
type replayProcess struct {
	cmd     *exec.Cmd
	in      io.Closer
	lines   *replaycheck.Conn
	idle    *time.Timer
	kill    context.CancelFunc
	printed *tail
}

// ended is how a process ended.
type ended struct {
	err     error
	printed string
}

// startRehearsal starts the binary, and waits until it says that it can replay. It gets nothing by which it could reach a hub.
func startReplay(ctx context.Context, binary string) (*replayProcess, error) {
	ctx, kill := context.WithCancel(ctx)
	p := &replayProcess{kill: kill, printed: &tail{}}
	p.cmd = exec.CommandContext(ctx, binary)
	p.cmd.Env = replayEnvironment(os.Environ())
	p.cmd.Stderr = p.printed
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

	p.in, p.lines = in, replaycheck.NewCommandConn(out, in, p.printed)
	p.idle = time.AfterFunc(readyTimeout, kill)
	var ready replaycheck.Reply
	if err := p.lines.Receive(&ready); err != nil {
		e := p.stop()
		return nil, fmt.Errorf("--binary %s cannot replay histories: %w; "+
			"use an orchestrator built with this release of perdure; its output: %s", binary, errors.Join(err, e.err),
			e.printed)
	}
	if len(ready.Ready) == 0 {
		p.stop()
		return nil, fmt.Errorf("--binary %s has no orchestrations; "+
			"add them to the registry that it passes to lambdahandler.StartOrchestrator", binary)
	}
	return p, nil
}

// replay asks for a verdict, and answers what is asked back.
func (p *replayProcess) replay(ctx context.Context, h *replaycheck.History, from source) (*replaycheck.Verdict, error) {
	p.idle.Reset(replyTimeout)
	defer p.idle.Stop()
	if err := p.lines.Send(replaycheck.Request{Replay: h, Bucket: from.object != nil}); err != nil {
		return nil, err
	}
	for {
		var reply replaycheck.Reply
		if err := p.lines.Receive(&reply); err != nil {
			return nil, err
		}
		if reply.Verdict != nil {
			return reply.Verdict, nil
		}
		if err := p.answer(ctx, &reply, from); err != nil {
			return nil, err
		}
	}
}

// answer reads what is asked for, and sends it, or why it cannot be had. Where the time is over, or the binary asks on and on, it is an error.
func (p *replayProcess) answer(ctx context.Context, reply *replaycheck.Reply, from source) (err error) {
	var doc json.RawMessage
	var object []byte
	p.idle.Stop() // the store's time is not the binary's
	switch {
	case reply.Wanted != nil:
		doc, err = from.document(*reply.Wanted)
	case reply.Object != "" && from.object != nil:
		object, err = from.object(reply.Object)
	default:
		return errors.New("unexpected reply from the binary")
	}
	if asksOn, ok := errors.AsType[*tooManyRequestsError](err); ok {
		return asksOn
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	p.idle.Reset(replyTimeout)
	switch {
	case err != nil:
		return p.lines.Send(replaycheck.Request{Problem: err.Error()})
	case object != nil:
		return p.lines.SendObject(object)
	default:
		return p.lines.Send(replaycheck.Request{Document: doc})
	}
}

// stop ends the process. It may be called again.
func (p *replayProcess) stop() ended {
	p.idle.Stop()
	_ = p.in.Close() // it ends by itself then, unless it hangs
	p.idle = time.AfterFunc(time.Second, p.kill)
	err := p.cmd.Wait()
	p.idle.Stop()
	p.kill()
	return ended{err, p.printed.text()}
}

// rehearsalEnvironment is what a binary is started with: no hub, no credentials, not the look of a Lambda environment. One that does not know what is
// asked of it finds nothing that it could serve.
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

// tail keeps the end of what is written to it.
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
