package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/restatedev/sdk-go/server"

	"github.com/perdure/perdure/bench/servers"
	"github.com/perdure/perdure/bench/workload"
)

func restatePeer() Peer {
	return Peer{
		Name: "restate", Version: "server 1.7.12, sdk-go 1.2.0", Server: true,
		Where: "server with one partition and its files in memory (tmpfs); an activity is a journaled closure " +
			"of the handler (Run), with bidirectional streaming",
		Open: openRestate,
	}
}

func openRestate(ctx context.Context, folder string) (*Opened, error) {
	o := &Opened{}
	s, err := servers.StartRestate(ctx, filepath.Join(folder, "node"))
	if s != nil {
		o.addServer(s)
	}
	if err != nil {
		return o.failed(err)
	}
	orchestrations := restate.NewService("orch").
		Handler(string(workload.Chain), restate.NewServiceHandler(rsChain)).
		Handler(string(workload.Fan), restate.NewServiceHandler(rsFan)).
		Handler(string(workload.Race), restate.NewServiceHandler(rsRace)).
		Handler(string(workload.Hold), restate.NewServiceHandler(rsHold))
	serving, stop := context.WithCancel(context.Background())
	e := &restateEngine{
		c: ingress.NewClient(s.Ingress,
			ingress.WithHttpClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}})),
		admin: s.Admin, stop: stop,
	}
	o.Engine = e
	failed := make(chan error, 1)
	go func() {
		failed <- server.NewRestate().WithLogger(discard().Handler(),
			true).Bidirectional(true).Bind(orchestrations).Start(serving, s.Service)
	}()
	if err := e.register(ctx, "http://"+s.Service, failed); err != nil {
		return o.failed(err)
	}
	return o, nil
}

type restateEngine struct {
	c     *ingress.Client
	admin string
	stop  context.CancelFunc
	live  sync.Map // instance ID to invocation ID
}

const (
	registerTries = 100
	registerEvery = 100 * time.Millisecond
)

// register registers the handlers with the server. It retries until they serve.
func (e *restateEngine) register(ctx context.Context, uri string, failed <-chan error) error {
	body, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	for range registerTries {
		if err = e.callAdmin(ctx, http.MethodPost, "/deployments", body); err == nil {
			return nil
		}
		select {
		case err := <-failed:
			return wrap("serve handlers", errors.Join(err, errors.New("the handlers have ended")))
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(registerEvery):
		}
	}
	return err
}

// callAdmin calls the server's admin API.
func (e *restateEngine) callAdmin(ctx context.Context, method, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, e.admin+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the response was read
	if resp.StatusCode >= http.StatusMultipleChoices {
		b, err := io.ReadAll(resp.Body)
		return errors.Join(fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b), err)
	}
	return nil
}

// Run sends one request and waits for its response. For Hold it sends and attaches instead, because Cancel needs the
// invocation ID.
func (e *restateEngine) Run(ctx context.Context, kind workload.Kind, in workload.Input) (int, error) {
	r := ingress.Service[workload.Input, int](e.c, "orch", string(kind))
	if kind != workload.Hold {
		return r.Request(ctx, in)
	}
	h, err := r.Send(ctx, in)
	if err != nil {
		return 0, err
	}
	e.live.Store(in.ID, h.Id())
	return h.Attach(ctx)
}

func (e *restateEngine) Cancel(ctx context.Context, id string) error {
	invocation, _ := e.live.Load(id)
	return e.callAdmin(ctx, http.MethodPatch, fmt.Sprintf("/invocations/%s/cancel", invocation), nil)
}

func (e *restateEngine) Close() error {
	e.stop()
	return nil
}

func rsNoop(ctx restate.Context, in workload.Payload) restate.RunAsyncFuture[int] {
	return restate.RunAsync(ctx, func(restate.RunContext) (int, error) {
		return workload.Noop(in), nil
	}, restate.WithName("noop"))
}

func rsBlock(ctx restate.Context, id string) restate.RunAsyncFuture[int] {
	return restate.RunAsync(ctx, func(ctx restate.RunContext) (int, error) {
		return 1, workload.Block(ctx, id, nil)
	}, restate.WithName("block"))
}

func rsChain(ctx restate.Context, in workload.Input) (int, error) {
	sum := 0
	for i := range in.N {
		v, err := rsNoop(ctx, workload.NewPayload(in.ID, i)).Result()
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func rsFan(ctx restate.Context, in workload.Input) (int, error) {
	fs := make([]restate.RunAsyncFuture[int], in.N)
	for i := range fs {
		fs[i] = rsNoop(ctx, workload.NewPayload(in.ID, i))
	}
	sum := 0
	for _, f := range fs {
		v, err := f.Result()
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// rsRace does not cancel the loser, because a closure has no invocation to cancel.
func rsRace(ctx restate.Context, in workload.Input) (int, error) {
	if _, err := restate.WaitFirst(ctx, rsBlock(ctx, in.ID), restate.After(ctx, workload.RaceTimer)); err != nil {
		return 0, err
	}
	workload.Mark(workload.TimerMark(in.ID))
	return 0, nil
}

func rsHold(ctx restate.Context, in workload.Input) (int, error) {
	v, err := rsBlock(ctx, in.ID).Result()
	return v, err
}
