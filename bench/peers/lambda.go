package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"

	"github.com/perdure/perdure/bench/servers"
	"github.com/perdure/perdure/bench/workload"
)

func lambda() Peer {
	return Peer{
		Name: "lambda-local", Version: "durable-execution-sdk-js 2.4.0, -testing 1.1.4",
		Where: "AWS's local test runner in Node.js with checkpoints in memory, not the service; " +
			"JavaScript, because no registry has the SDK for Go",
		Cannot: map[workload.Kind]string{
			workload.Race: "its test runner skips time",
			workload.Hold: "its test runner cannot cancel an execution",
		},
		Open: func(ctx context.Context, folder string) (*Opened, error) {
			s, err := servers.StartLambda(ctx, filepath.Join(folder, "node"))
			if err != nil {
				return nil, err
			}
			e := &lambdaEngine{in: json.NewEncoder(s.In), waiting: map[string]chan lambdaResponse{}}
			go e.read(bufio.NewScanner(s.Out))
			o := &Opened{Engine: e}
			o.addServer(s)
			return o, nil
		},
	}
}

type lambdaResponse struct {
	ID     string `json:"id"`
	Result int    `json:"result"`
	Error  string `json:"error"`
	Ran    int    `json:"ran"` // activities since the previous response
}

// lambdaEngine sends requests to the runner's process and returns its responses to the callers.
type lambdaEngine struct {
	mu      sync.Mutex
	in      *json.Encoder
	waiting map[string]chan lambdaResponse
	ended   bool
}

var errRunnerEnded = errors.New("the runner has ended")

func (e *lambdaEngine) Run(ctx context.Context, kind workload.Kind, in workload.Input) (int, error) {
	response := make(chan lambdaResponse, 1)
	if err := e.send(kind, in, response); err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case a, ok := <-response:
		if !ok {
			return 0, errRunnerEnded
		}
		if a.Error != "" {
			return 0, errors.New(a.Error)
		}
		return a.Result, nil
	}
}

func (e *lambdaEngine) send(kind workload.Kind, in workload.Input, response chan lambdaResponse) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return errRunnerEnded
	}
	e.waiting[in.ID] = response
	return e.in.Encode(map[string]any{"id": in.ID, "kind": kind, "n": in.N})
}

// read sends each response to its caller until the output ends.
func (e *lambdaEngine) read(lines *bufio.Scanner) {
	for lines.Scan() {
		var a lambdaResponse
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // not a response, but output of the runner's packages
		}
		workload.Ran(a.Ran)
		e.mu.Lock()
		if to, ok := e.waiting[a.ID]; ok {
			to <- a
			delete(e.waiting, a.ID)
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	for _, to := range e.waiting {
		close(to)
	}
}

func (e *lambdaEngine) Cancel(context.Context, string) error {
	return errors.New("the runner cannot cancel an execution")
}

func (e *lambdaEngine) Close() error { return nil }
