package main

import (
	"context"
	"errors"
	"go/ast"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	goanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/analysis"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/verification"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
	"github.com/perdure/perdure/ui"
)

// driver runs a scenario, on a hub or in the test kit.
type driver struct {
	t     *testing.T
	sdk   *client.Client
	state *activityState
	pass  func(d time.Duration) // runs the hub for d
}

func (d *driver) start(id, name, input string, opts ...client.StartOption) {
	d.t.Helper()
	if _, err := d.sdk.Start(d.t.Context(), name, input, append(opts, client.WithInstanceID(id))...); err != nil {
		d.t.Fatal(err)
	}
	d.pass(10 * time.Second)
}

// raiseGo sends the event for which all orchestrations wait.
func (d *driver) raiseGo(id, data string) {
	d.t.Helper()
	d.check(d.sdk.RaiseEvent(d.t.Context(), id, goEvent, data))
	d.pass(10 * time.Second)
}

func (d *driver) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) status(id string) client.Status {
	d.t.Helper()
	s, err := d.sdk.Status(d.t.Context(), id)
	d.check(err)
	return s
}

func (d *driver) wantStatus(id string, want client.RuntimeStatus) client.Status {
	d.t.Helper()
	s := d.status(id)
	if s.Status != want {
		d.t.Fatalf("%s is %s (%+v), want %s", id, s.Status, s.Failure, want)
	}
	return s
}

func (d *driver) wantOutput(id, output string) {
	d.t.Helper()
	if s := d.wantStatus(id, client.StatusCompleted); string(s.Output) != `"`+output+`"` {
		d.t.Errorf("%s returned %.100s, want %q", id, s.Output, output)
	}
}

// event returns the first event of a kind.
func (d *driver) event(id string, kind history.Kind) history.Event {
	d.t.Helper()
	events, err := client.Collect(d.sdk.History(d.t.Context(), id))
	d.check(err)
	i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == kind })
	if i < 0 {
		d.t.Fatalf("%s has no %s", id, kind)
	}
	return events[i]
}

// pendingTask returns the only pending task of an instance.
func (d *driver) pendingTask(id string) client.PendingItem {
	d.t.Helper()
	p, err := d.sdk.Pending(d.t.Context(), id, "", 0)
	d.check(err)
	if len(p.Items) != 1 {
		d.t.Fatalf("%s has %d pending tasks: %+v", id, len(p.Items), p.Items)
	}
	return p.Items[0]
}

// has fails the test unless text contains all strings.
func (d *driver) has(text string, all ...string) {
	d.t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			d.t.Errorf("lacks %s:\n%.2000s", want, text)
		}
	}
}

func (d *driver) lacks(text string, all ...string) {
	d.t.Helper()
	for _, unwanted := range all {
		if strings.Contains(text, unwanted) {
			d.t.Errorf("has %s:\n%.2000s", unwanted, text)
		}
	}
}

// world is a hub on AWS in memory in virtual time, with its interfaces. The command line and the handler plain have no
// codec.
type world struct {
	*driver

	cli        *tool
	hub        *simhub.Hub
	api, plain http.Handler
	stop       func()
}

// withHub runs f on a hub. The functions of the hub run until f returns or calls loseMessages.
func withHub(s *scenario, f func(w *world)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			state := &activityState{}
			code := matrixCode(state, false)
			schedule.Register(code)
			hub, err := simhub.New(simhub.Options{
				Registry: code, Exclusive: true, Bucket: true, BatchSize: 1, CacheBytes: -1, Codecs: s.codecs,
			})
			if err != nil {
				t.Fatal(err)
			}
			w := &world{driver: &driver{t: t, state: state}, hub: hub, cli: setup(t)}
			w.open(s.codecs)
			w.serve()
			defer synctest.Wait()
			defer hub.Close()
			defer func() { w.stop() }()
			f(w)
		})
	}
}

// open opens the interfaces of the hub.
func (w *world) open(codecs []perdure.Codec) {
	opts := []client.Option{client.WithQuerier(w.hub)}
	a := admin.New(w.hub.Provider)
	plain := client.New(w.hub.Provider, opts...)
	if len(codecs) > 0 {
		opts = append(opts, client.WithCodec(codecs[0]))
	}
	w.sdk = client.New(w.hub.Provider, opts...)
	w.cli.client, w.cli.admin, w.cli.now = plain, a, time.Now
	quiet := httpapi.WithLogger(slog.New(slog.DiscardHandler))
	w.api, w.plain = httpapi.New(w.sdk, a, quiet), httpapi.New(plain, a, quiet)
	w.pass = func(d time.Duration) {
		for ; d > 0; d -= 24 * time.Hour {
			time.Sleep(min(d, 24*time.Hour))
			synctest.Wait()
			if _, err := w.hub.Renewer.Sweep(w.t.Context()); err != nil {
				w.t.Error(err)
			}
		}
	}
}

func (w *world) serve() {
	ctx, stop := context.WithCancel(w.t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		w.hub.Cloud.Serve(ctx)
	}()
	w.stop = func() {
		stop()
		<-served
	}
}

// loseMessages stops the functions, and deletes all messages and schedules of the hub.
func (w *world) loseMessages() {
	w.t.Helper()
	ctx := w.t.Context()
	w.stop()
	where := w.hub.Provider.Config()
	urls := []string{where.InboxURL, where.TimersURL}
	for _, url := range where.WorkQueues {
		urls = append(urls, url)
	}
	for _, url := range urls {
		_, err := w.hub.Cloud.Queues.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &url})
		w.check(err)
	}
	list, err := w.hub.Cloud.Schedules.ListSchedules(ctx,
		&scheduler.ListSchedulesInput{GroupName: &where.ScheduleGroup})
	w.check(err)
	for i := range list.Schedules {
		_, err := w.hub.Cloud.Schedules.DeleteSchedule(ctx,
			&scheduler.DeleteScheduleInput{GroupName: &where.ScheduleGroup, Name: list.Schedules[i].Name})
		w.check(err)
	}
	time.Sleep(6 * time.Minute) // SQS drops a message that is sent again within five minutes
}

// call sends a request to the API. The body of a request is JSON.
func (w *world) call(api http.Handler, status int, method, path, body string) string {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, "/v1/"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	api.ServeHTTP(rec, r)
	if rec.Code != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, rec.Code, status, rec.Body)
	}
	return rec.Body.String()
}

func (w *world) get(path string) string {
	w.t.Helper()
	return w.call(w.api, http.StatusOK, http.MethodGet, path, "")
}

func (w *world) post(status int, path, body string) string {
	w.t.Helper()
	return w.call(w.api, status, http.MethodPost, path, body)
}

// uiDocument is the document of the web UI.
var uiDocument = sync.OnceValue(func() string {
	rec := httptest.NewRecorder()
	ui.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, ui.Path, http.NoBody))
	return rec.Body.String()
})

// shows fails the test unless the code of the web UI contains each piece, and the response to request contains data.
// The pieces send the request or show its data.
func (w *world) shows(request, data string, code ...string) {
	w.t.Helper()
	for _, piece := range code {
		if !strings.Contains(uiDocument(), piece) {
			w.t.Errorf("the web UI lacks %s", piece)
		}
	}
	w.has(w.get(request), data)
}

// wantVerified replays the open instances. With the same code, all instances must continue. Changed code must block the
// instance id.
func (w *world) wantVerified(id string, open int) {
	w.t.Helper()
	if exit, v := w.cli.verified("matrix"); exit != 0 || v.Replayed != open || len(v.Findings) != 0 {
		w.t.Errorf("same code: exit %d, %+v; %s", exit, v, w.cli.err.String())
	}
	exit, v := w.cli.verified("matrix, changed")
	if !slices.ContainsFunc(v.Findings, func(f verification.Finding) bool {
		return f.InstanceID == id && strings.Contains(f.Problem, "another step")
	}) || exit != cli.CodeFailed {
		w.t.Errorf("changed code: exit %d, %+v; %s", exit, v, w.cli.err.String())
	}
}

// wantNoRestart fails the test unless a restart is rejected with an error that contains the fix.
func (w *world) wantNoRestart(id, fix string) {
	w.t.Helper()
	restarted, err := w.sdk.Restart(w.t.Context(), id)
	if e, ok := errors.AsType[*provider.FieldError](err); !ok || !strings.Contains(e.Problem, fix) {
		w.t.Errorf("restart of %s: %q, %v", id, restarted, err)
	}
}

// export exports an instance. The document must contain the data.
func (w *world) export(id string, data ...string) (document string) {
	w.t.Helper()
	document = w.cli.mustRun("export", id)
	w.has(document, data...)
	return document
}

// wantImported exports an instance, and replays the document without the hub. Changed code must not match.
func (w *world) wantImported(id string, data ...string) {
	w.t.Helper()
	w.wantImportedAs(id, map[string]int{"matrix": 0, "matrix, changed": cli.CodeFailed}, data...)
}

// wantImportedAs exports an instance, and replays the document with each build. exits contains the required exit codes
// by build.
func (w *world) wantImportedAs(id string, exits map[string]int, data ...string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "history.json")
	w.check(os.WriteFile(file, []byte(w.export(id, data...)), 0o600))
	home := setup(w.t)
	for code, want := range exits {
		if exit := home.run(w.t.Context(), "import", file, "--binary", orchestratorOf(w.t, code)); exit != want {
			w.t.Errorf("%s: exit %d, want %d; %s%s", code, exit, want, home.out.String(), home.err.String())
		}
	}
}

// withTestKit runs a scenario in the test kit, and calls f with the exported history while the instance uses the
// feature. The history is replayed before f and at the end. The replay must fail with changed code.
func withTestKit(s *scenario, f func(d *driver, document string)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		state := &activityState{}
		opts := []perduretest.Option{perduretest.WithLargePayloads()}
		if len(s.codecs) > 0 {
			opts = append(opts, perduretest.WithCodec(s.codecs[0]))
		}
		env := perduretest.New(t, matrixCode(state, false), opts...)
		d := &driver{t: t, sdk: env.Client(), state: state, pass: env.Advance}
		h := setup(t)
		h.client, h.admin = env.Client(), env.Admin()
		s.begin(d)
		document := h.mustRun("export", s.id())
		s.replay(t, document)
		f(d, document)
		s.finish(d)
		if h.run(t.Context(), "export", s.id()) == 0 { // otherwise its retention has ended
			s.replay(t, h.out.String())
		}
	}
}

// replay replays an exported history. The replay must fail with changed code.
func (s *scenario) replay(t *testing.T, document string) {
	t.Helper()
	replay := func(tb testing.TB, changed bool) {
		tb.Helper()
		perduretest.Replay(tb, matrixCode(&activityState{}, changed), []byte(document),
			perduretest.WithReplayCodecs(turned{}))
	}
	if !s.inBucket {
		replay(t, false)
	}
	if r := (&report{TB: t}); !r.fails(func() { replay(r, true) }) {
		t.Error("Replay accepts changed code")
	}
}

// lintFindings returns the findings of the linter in testdata/matrix, by function.
var lintFindings = sync.OnceValues(func() (map[string]string, error) {
	config := &packages.Config{Mode: packages.LoadAllSyntax | packages.NeedModule}
	pkgs, err := packages.Load(config, "./testdata/matrix")
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(pkgs) > 0 {
		return nil, errors.New("testdata/matrix does not build")
	}
	graph, err := checker.Analyze([]*goanalysis.Analyzer{analysis.New()}, pkgs, nil)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, act := range graph.Roots {
		for _, d := range act.Diagnostics {
			for _, file := range act.Package.Syntax {
				for _, decl := range file.Decls {
					f, ok := decl.(*ast.FuncDecl)
					if ok && f.Pos() <= d.Pos && d.Pos < f.End() {
						found[f.Name.Name] += d.Message + "\n"
					}
				}
			}
		}
	}
	return found, nil
})
