package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// matrixCells returns the matrix.
func matrixCells() map[cell]check {
	all := map[cell]check{}
	for feature, s := range map[string]*scenario{
		"codec": encoded, "large payloads": large, "exclusive keys": exclusive, "inline": inline, "restart": continuing,
		"pause": pausing, "updates": updating, "tokens": completing, "schedules": scheduling, "retention": retention,
		"versions": versions, "entities": entities, "cancellation": cancelling, "queries": querying,
		"details": details, "compensation": compensating,
	} {
		all[cell{feature, "verify"}] = verifies(s, 1)
		all[cell{feature, "reconcile"}] = reconciles(s)
	}
	for _, cells := range []map[cell]check{
		codecCells(), largeCells(), exclusiveCells(), inlineCells(), restartCells(), pauseCells(), updateCells(),
		tokenCells(), scheduleCells(), retentionCells(), versionCells(), entityCells(), cancellationCells(),
		queryCells(), detailCells(), compensationCells(),
	} {
		maps.Copy(all, cells)
	}
	return all
}

// begun tests a feature that an instance uses.
func begun(s *scenario, f func(w *world)) check {
	return check{run: onHub(s, func(w *world) {
		s.begin(w.driver)
		f(w)
	})}
}

// effective tests a feature while an instance uses it, and then that it has had its effect.
func effective(s *scenario, f func(w *world)) check {
	return begun(s, func(w *world) {
		f(w)
		s.finish(w.driver)
	})
}

func inKit(s *scenario, f func(d *driver, document string)) check {
	return check{run: onKit(s, f)}
}

// verifies replays the instances of a scenario with perdure verify.
func verifies(s *scenario, open int) check {
	return begun(s, func(w *world) { w.verified(s.id(), open) })
}

// imports replays the exported history, which has some data.
func imports(s *scenario, data ...string) check {
	return begun(s, func(w *world) { w.imported(s.id(), data...) })
}

// reconciles loses all messages and timers while activities run. The scenario finishes after perdure reconcile.
func reconciles(s *scenario) check {
	return check{run: onHub(s, func(w *world) {
		w.out.hold.Store(true)
		s.begin(w.driver)
		w.lose()
		w.cli.mustRun("reconcile", "--yes")
		w.out.hold.Store(false)
		w.serve()
		w.pass(time.Minute)
		s.finish(w.driver)
	})}
}

// lints wants a finding of a rule in the function of testdata/matrix.
func lints(function, rule string) check {
	return check{run: func(t *testing.T) {
		t.Helper()
		found, err := lintFindings()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(found[function], "["+rule+"]") {
			t.Errorf("%s has the findings %q, want %s", function, found[function], rule)
		}
	}}
}

// countingCodec counts what it encodes.
type countingCodec struct {
	turned

	encoded atomic.Int64
}

func (c *countingCodec) Encode(ctx context.Context, about perdure.PayloadInfo, doc []byte) ([]byte, error) {
	c.encoded.Add(1)
	return c.turned.Encode(ctx, about, doc)
}

func codecCells() map[cell]check {
	const secret = "secret"
	return map[cell]check{
		{"codec", "client"}: begun(encoded, func(w *world) {
			encoded.finish(w.driver)
			s, err := w.cli.client.Status(w.t.Context(), one)
			if err != nil || s.Output != nil || s.EncodedOutput == nil || s.EncodedOutput.Codec != "turned" {
				w.t.Errorf("without the codec: %s, %+v, %v", s.Output, s.EncodedOutput, err)
			}
		}),
		{"codec", "http"}: begun(encoded, func(w *world) {
			encoded.finish(w.driver)
			w.has(w.get("instances/"+one+"/result"), `"output":"did secret now"`)
			w.has(w.get("instances/"+one+"/history"), secret)
			for _, path := range []string{"/result", "/history"} {
				got := w.call(w.plain, http.StatusOK, http.MethodGet, "instances/"+one+path, "")
				w.has(got, "turned")
				w.lacks(got, secret)
			}
		}),
		{"codec", "cli"}: begun(encoded, func(w *world) {
			encoded.finish(w.driver)
			for _, verb := range []string{"status", "history", "wait", "list"} {
				args := []string{verb, one}
				if verb == "list" {
					args = args[:1]
				}
				got := w.cli.mustRun(args...)
				w.lacks(got, secret)
				if verb == "status" || verb == "history" {
					w.has(got, "encoded by turned")
				}
			}
		}),
		{"codec", "ui"}: begun(encoded, func(w *world) {
			w.shows("instances/"+one+"/history", `"did secret"`, "payload('Input', first.input)")
			w.api = w.plain
			w.shows("instances/"+one+"/history", `"ref":"data:turned`, "v.ref.startsWith('data:')", "codec ${codec}")
		}),
		{"codec", "kit"}: {run: func(t *testing.T) {
			t.Helper()
			t.Run("env", func(t *testing.T) {
				codec, counted := &countingCodec{}, *encoded
				counted.codecs = []perdure.Codec{codec}
				onKit(&counted, func(*driver, string) {
					if codec.encoded.Load() == 0 {
						t.Error("the codec has encoded nothing")
					}
				})(t)
			})
			t.Run("replay", onHub(encoded, func(w *world) {
				encoded.begin(w.driver)
				document, code := []byte(w.exported(one, "data:turned")), matrixCode(w.out, false)
				perduretest.Replay(w.t, code, document, perduretest.WithReplayCodecs(turned{}))
				if !failsTest(w.t, func(tb testing.TB) { perduretest.Replay(tb, code, document) }) {
					w.t.Error("Replay reads an encoded history without its codec")
				}
			}))
		}},
		{"codec", "export and import"}: begun(encoded, func(w *world) {
			w.imported(one, "data:turned")
			w.lacks(w.exported(one), secret)
		}),
		{"codec", "linter"}: no("functions and clients have codecs; orchestrations, which the linter checks, do not"),
	}
}

func largeCells() map[cell]check {
	return map[cell]check{
		{"large payloads", "client"}: effective(large, func(w *world) {
			e := w.event(one, history.ActivityCompleted)
			if e.Result.StorageKey() == "" {
				w.t.Errorf("the result is not in the payload store: %.100s", e.Result)
			}
			e.EachPayload(func(p history.EventPayload) {
				if got, err := w.sdk.Payload(w.t.Context(), one, p); err != nil || len(got) != 300<<10+2 {
					w.t.Errorf("payload: %d bytes, %v", len(got), err)
				}
			})
		}),
		{"large payloads", "http"}: begun(large, func(w *world) {
			w.has(w.get("instances/"+one+"/history"), `"ref":"object:`)
			large.finish(w.driver)
			w.has(w.get("instances/"+one+"/result"), `xxx now"`)
		}),
		{"large payloads", "cli"}: begun(large, func(w *world) {
			w.has(w.cli.mustRun("history", one), "in the payload store at x/")
			large.finish(w.driver)
			w.has(w.cli.mustRun("wait", one), `xxx now"`)
			w.cli.mustRun("sweep")
			w.wantStatus(one, client.StatusCompleted)
		}),
		{"large payloads", "ui"}: begun(large, func(w *world) {
			w.shows("instances/"+one+"/history", `"ref":"object:`, "'in the payload store'")
		}),
		{"large payloads", "kit"}: inKit(large, func(d *driver, _ string) {
			if e := d.event(one, history.ActivityCompleted); e.Result.StorageKey() == "" {
				d.t.Errorf("the result is not in the payload store: %.100s", e.Result)
			}
		}),
		{"large payloads", "export and import"}: begun(large, func(w *world) {
			// An import does not read the bucket, so that the instance is unread.
			w.importedAs(one, map[string]int{"matrix": cli.CodeError}, `"ref":"object:`)
		}),
		{"large payloads", "linter"}: no("the size of a payload is known only at run time"),
	}
}

func exclusiveCells() map[cell]check {
	const queue = "default.fifo"
	return map[cell]check{
		{"exclusive keys", "client"}: effective(exclusive, func(w *world) {
			if p := w.pendingTask(other); p.Queue != queue {
				w.t.Errorf("pending: %+v", p)
			}
			if e := w.event(other, history.ActivityScheduled); e.ExclusiveKey != "account 7" {
				w.t.Errorf("scheduled: %+v", e)
			}
		}),
		{"exclusive keys", "http"}: begun(exclusive, func(w *world) {
			w.has(w.get("instances/"+other), `"queue":"`+queue+`"`)
			w.has(w.get("instances/"+other+"/history"), `"exclusiveKey":"account 7"`)
		}),
		{"exclusive keys", "cli"}: begun(exclusive, func(w *world) {
			w.has(w.cli.mustRun("status", other), "Pending: 1", step)
			w.has(w.cli.mustRun("status", other, "--json"), `"queue":"`+queue+`"`)
			w.has(w.cli.mustRun("history", other, "--json"), `"exclusiveKey":"account 7"`)
		}),
		{"exclusive keys", "ui"}: begun(exclusive, func(w *world) {
			w.shows("instances/"+other+"/history", `"queue":"`+queue+`"`, "fact('Queue', e?.queue)")
		}),
		{"exclusive keys", "kit"}:               inKit(exclusive, func(*driver, string) {}),
		{"exclusive keys", "verify"}:            verifies(exclusive, 2),
		{"exclusive keys", "export and import"}: imports(exclusive, `"exclusiveKey":"account 7"`),
		{"exclusive keys", "linter"}:            no("a key is a value, which is known only at run time"),
	}
}

func inlineCells() map[cell]check {
	ran := func(d *driver) {
		if e := d.event(one, history.ActivityCompleted); !e.Inline {
			d.t.Errorf("did not run inline: %+v", e)
		}
	}
	return map[cell]check{
		{"inline", "client"}: effective(inline, func(w *world) { ran(w.driver) }),
		{"inline", "http"}: begun(inline, func(w *world) {
			if n := strings.Count(w.get("instances/"+one+"/history"), `"inline":true`); n != 2 {
				w.t.Errorf("%d inline events, want 2", n)
			}
		}),
		{"inline", "cli"}: begun(inline, func(w *world) {
			if n := strings.Count(w.cli.mustRun("history", one), "inline \""); n != 2 {
				w.t.Errorf("%d inline events, want 2: %s", n, w.cli.out.String())
			}
		}),
		{"inline", "ui"}: begun(inline, func(w *world) {
			w.shows("instances/"+one+"/history", `"inline":true`, "if (e.inline) parts.push('inline')", "fact('Inline'")
		}),
		{"inline", "kit"}:               inKit(inline, func(d *driver, _ string) { ran(d) }),
		{"inline", "export and import"}: imports(inline, `"inline":true`),
		{"inline", "linter"}:            no("an inline call follows the same rules as any other call"),
	}
}

func restartCells() map[cell]check {
	restarted := func(w *world, id string) {
		w.pass(10 * time.Second)
		w.proceed(id, "again")
		w.wantOutput(id, "did second again")
	}
	return map[cell]check{
		{"restart", "client"}: begun(continuing, func(w *world) {
			continuing.finish(w.driver)
			id, err := w.sdk.Restart(w.t.Context(), one)
			w.check(err)
			restarted(w, id)
			result := w.event(one, history.ActivityCompleted)
			id, err = w.sdk.Restart(w.t.Context(), one, client.FromEvent(result.ID))
			w.check(err)
			restarted(w, id)
			if n := w.out.runs("second"); n != 2 {
				w.t.Errorf("the activity ran %d times; a restart from its result runs it no more", n)
			}
		}),
		{"restart", "http"}: begun(continuing, func(w *world) {
			continuing.finish(w.driver)
			w.has(w.get("instances/"+one+"/executions"), `"number":1`, `"number":2`)
			w.post(http.StatusAccepted, "instances/"+one+"/restart", `{"instanceId":"again"}`)
			restarted(w, "again")
		}),
		{"restart", "cli"}: begun(continuing, func(w *world) {
			continuing.finish(w.driver)
			if n := strings.Count(w.cli.mustRun("executions", one), "\n"); n != 3 {
				w.t.Errorf("executions: %s", w.cli.out.String())
			}
			restarted(w, strings.TrimSpace(w.cli.mustRun("restart", one)))
		}),
		{"restart", "ui"}: begun(continuing, func(w *world) {
			continuing.finish(w.driver)
			w.shows("instances/"+one+"/executions?limit=200", `"number":2`, "'/executions?limit=200'")
			w.shows("instances/"+one, `"executionNumber":2`,
				"instancePath(s.instanceId, '/restart'), at ? { from: Number(at) } : {}")
			w.post(http.StatusAccepted, "instances/"+one+"/restart", `{"from":4}`)
		}),
		{"restart", "kit"}: inKit(continuing, func(d *driver, _ string) {}),
		{"restart", "export and import"}: begun(continuing, func(w *world) {
			w.proceed(one, "on")
			w.imported(one, `"number":1`, `"number":2`, "OrchestrationContinuedAsNew")
		}),
		{"restart", "linter"}: lints("restart", "continueasnew"),
	}
}

func pauseCells() map[cell]check {
	resumed := func(w *world) {
		w.pass(10 * time.Second)
		w.wantStatus(one, client.StatusRunning)
	}
	return map[cell]check{
		{"pause", "client"}: effective(pausing, func(*world) {}),
		{"pause", "http"}: begun(pausing, func(w *world) {
			w.has(w.get("instances/"+one), `"paused":{`, `"message":"audit"`)
			w.has(w.get("instances?status=Paused"), `"message":"audit"`)
			w.post(http.StatusAccepted, "instances/"+one+"/resume", "")
			resumed(w)
		}),
		{"pause", "cli"}: begun(pausing, func(w *world) {
			w.has(w.cli.mustRun("status", one), "Paused", `"audit"`)
			w.has(w.cli.mustRun("list", "--status", "Paused"), one+" ")
			w.has(w.cli.mustRun("list", "--status", "Paused", "--json"), `"message":"audit"`)
			w.cli.mustRun("resume", one)
			resumed(w)
		}),
		{"pause", "ui"}: begun(pausing, func(w *world) {
			w.shows("instances/"+one+"?pending=false", `"message":"audit"`,
				"if (s.paused) parts.push(paused(s.paused))", "instancePath(s.instanceId, '/pause')",
				"instancePath(s.instanceId, '/resume')")
			w.post(http.StatusAccepted, "instances/"+one+"/resume", `{"message":""}`)
			resumed(w)
		}),
		{"pause", "kit"}:               inKit(pausing, func(*driver, string) {}),
		{"pause", "export and import"}: imports(pausing, "ExecutionSuspended", "audit"),
		{"pause", "linter"}:            no("clients pause instances; orchestrations, which the linter reads, do not"),
	}
}

func updateCells() map[cell]check {
	return map[cell]check{
		{"updates", "client"}: effective(updating, func(*world) {}),
		{"updates", "http"}: begun(updating, func(w *world) {
			const path = "instances/" + one + "/update"
			w.has(w.post(http.StatusOK, path, `{"update":"address","input":"High St"}`), `"result":"did High St"`)
			w.has(w.post(http.StatusUnprocessableEntity, path, `{"update":"address","input":""}`),
				`"code":"update_rejected"`, "no address")
		}),
		{"updates", "cli"}: begun(updating, func(w *world) {
			w.has(w.cli.mustRun("update", one, "address", `"High St"`), `"did High St"`)
			w.cli.wantError(cli.CodeError, "no address", "update", one, "address", `""`)
		}),
		{"updates", "ui"}: begun(updating, func(w *world) { // it sends none
			w.shows("instances/"+one+"/history", `"kind":"UpdateAccepted"`,
				"Updates: ['UpdateReceived', 'UpdateAccepted'")
		}),
		{"updates", "kit"}:               inKit(updating, func(*driver, string) {}),
		{"updates", "export and import"}: imports(updating, "UpdateAccepted", "UpdateCompleted"),
		{"updates", "linter"}:            lints("updates", "query"),
	}
}

func tokenCells() map[cell]check {
	carried := func(w *world) {
		w.pass(10 * time.Second)
		w.proceed(one, "now")
		w.wantOutput(one, "carried now")
	}
	return map[cell]check{
		{"tokens", "client"}: effective(completing, func(w *world) {
			if p := w.pendingTask(one); p.ResultPendingSince.IsZero() {
				w.t.Errorf("pending: %+v", p)
			}
		}),
		{"tokens", "http"}: begun(completing, func(w *world) {
			w.has(w.get("instances/"+one), `"handedOverAt":"`)
			w.post(http.StatusOK, "activities/heartbeat", `{"token":"`+w.out.token+`"}`)
			w.post(http.StatusAccepted, "activities/complete", `{"token":"`+w.out.token+`","result":"carried"}`)
			carried(w)
		}),
		{"tokens", "cli"}: begun(completing, func(w *world) {
			w.has(w.cli.mustRun("status", one), "waiting for asynchronous completion")
			w.has(w.cli.mustRun("heartbeat", w.out.token), "continue")
			w.cli.mustRun("complete", w.out.token, "--result", `"carried"`)
			carried(w)
		}),
		{"tokens", "ui"}: begun(completing, func(w *world) { // it does not know the tokens
			w.shows("instances/"+one+"?limit=200", `"handedOverAt":"`, "if (p.handedOverAt) return")
		}),
		{"tokens", "kit"}: inKit(completing, func(d *driver, _ string) {
			if p := d.pendingTask(one); p.ResultPendingSince.IsZero() {
				d.t.Errorf("pending: %+v", p)
			}
		}),
		{"tokens", "export and import"}: imports(completing, `"name":"step"`),
		{"tokens", "linter"}:            no("activities return ErrPending; the linter does not check activities"),
	}
}

func scheduleCells() map[cell]check {
	return map[cell]check{
		{"schedules", "client"}: effective(scheduling, func(*world) {}),
		{"schedules", "http"}: effective(scheduling, func(w *world) {
			w.has(w.get("schedules"), `"id":"nightly"`)
			w.has(w.get("schedules/"+planned), `"started":1`, `"next":"2000-01-02T02:00:00Z"`)
			w.post(http.StatusAccepted, "schedules/"+planned+"/pause", `{"message":"holiday"}`)
			w.pass(10 * time.Second)
			w.has(w.get("schedules/"+planned), `"holiday"`)
			w.post(http.StatusAccepted, "schedules/"+planned+"/resume", "")
		}),
		{"schedules", "cli"}: effective(scheduling, func(w *world) {
			w.has(w.cli.mustRun("schedule", "list"), planned)
			w.has(w.cli.mustRun("schedule", "show", planned), "1 started", "2000-01-02T02:00:00Z")
			w.has(w.cli.mustRun("list", "--parent", plannedIn), firstRun)
		}),
		{"schedules", "ui"}: begun(scheduling, func(w *world) { // it shows the instance of a schedule, and its runs
			w.shows("instances?parent=schedule%3Anightly", `"instanceId":"`+firstRun+`"`, "['parent', view.id]")
			w.shows("instances/~c2NoZWR1bGU6bmlnaHRseQ?pending=false", `"status":"Running"`, "return '~' + btoa(raw)")
		}),
		{"schedules", "kit"}:               inKit(scheduling, func(*driver, string) {}),
		{"schedules", "verify"}:            verifies(scheduling, 2),
		{"schedules", "export and import"}: imports(scheduling, `"parent":{"instanceId":"`+plannedIn+`"`),
		{"schedules", "linter"}:            no("stacks and clients create schedules; orchestrations do not"),
	}
}

func retentionCells() map[cell]check {
	// expired checks an interface before and after the retention.
	expired := func(before, after func(w *world)) check {
		return begun(retention, func(w *world) {
			before(w)
			retention.finish(w.driver)
			after(w)
		})
	}
	return map[cell]check{
		{"retention", "client"}: expired(func(*world) {}, func(w *world) {
			all, err := client.Collect(w.sdk.List(w.t.Context(), client.ListQuery{}))
			if err != nil || len(all) != 0 {
				w.t.Errorf("after the retention, the list has %+v, %v", all, err)
			}
		}),
		{"retention", "http"}: expired(func(w *world) {
			w.has(w.get("instances"), `"instanceId":"it"`)
		}, func(w *world) {
			w.lacks(w.get("instances"), `"instanceId":"it"`)
			w.call(w.api, http.StatusNotFound, http.MethodGet, "instances/"+one+"/history", "")
		}),
		{"retention", "cli"}: expired(func(w *world) { w.has(w.cli.mustRun("list"), one+" ") }, func(w *world) {
			w.lacks(w.cli.mustRun("list"), one+" ")
			w.cli.wantError(cli.CodeError, "not found", "status", one)
		}),
		{"retention", "ui"}: expired(func(w *world) {
			w.shows("instances?limit=200", `"instanceId":"it"`, "get(`instances?${query(")
		}, func(w *world) {
			w.lacks(w.get("instances?limit=200"), `"instanceId":"it"`)
			w.shows("instances?limit=200", "items", "'The instance may have been purged. '")
			w.call(w.api, http.StatusNotFound, http.MethodGet, "instances/"+one+"?pending=false", "")
		}),
		{"retention", "kit"}:    inKit(retention, func(*driver, string) {}),
		{"retention", "verify"}: no("verify replays instances that have not ended; retention is for those that have"),
		{"retention", "export and import"}: expired(func(w *world) { w.imported(one) }, func(w *world) {
			w.cli.wantError(cli.CodeError, "not found", "export", one)
		}),
		{"retention", "linter"}: no("a retention is an option of a registration, and every value is valid"),
	}
}

func versionCells() map[cell]check {
	return map[cell]check{
		{"versions", "client"}: effective(versions, func(w *world) {
			all, err := client.Collect(w.sdk.List(w.t.Context(), client.ListQuery{Version: "0"}))
			if err != nil || len(all) != 1 || all[0].InstanceID != other {
				w.t.Errorf("version 0: %+v, %v", all, err)
			}
		}),
		{"versions", "http"}: begun(versions, func(w *world) {
			got := w.get("instances?version=0")
			w.has(got, `"instanceId":"other"`)
			w.lacks(got, `"instanceId":"it"`)
			w.post(http.StatusAccepted, "orchestrations/versioned", `{"instanceId":"third","version":"0"}`)
			w.pass(10 * time.Second)
			w.has(w.get("instances/third"), `"version":"0"`)
		}),
		{"versions", "cli"}: begun(versions, func(w *world) {
			w.has(w.cli.mustRun("versions", "--json"), `"orchestration":"versioned","version":"0"`,
				`"orchestration":"versioned","version":"1"`)
			w.has(w.cli.mustRun("versions", "--changes"), "gifts")
			w.lacks(w.cli.mustRun("list", "--version", "0"), one+" ")
		}),
		{"versions", "ui"}: begun(versions, func(w *world) {
			w.shows("instances?version=0&limit=200", `"instanceId":"other"`, "field('version', 'Version'")
			w.shows("instances/"+one+"/history", `"change":"gifts"`, "${e.change}: version ${e.version}")
		}),
		{"versions", "kit"}: inKit(versions, func(d *driver, _ string) {
			if e := d.event(one, history.VersionMarked); e.ChangeID != "gifts" || e.Version != "1" {
				d.t.Errorf("marked: %+v", e)
			}
		}),
		{"versions", "verify"}:            verifies(versions, 2),
		{"versions", "export and import"}: imports(versions, `"change":"gifts"`),
		{"versions", "linter"}:            lints("versions", "change"),
	}
}

func entityCells() map[cell]check {
	return map[cell]check{
		{"entities", "client"}: effective(entities, func(*world) {}),
		{"entities", "http"}: begun(entities, func(w *world) {
			w.has(w.post(http.StatusOK, "entities/stock/tea/refill", `{"input":2}`), `"result":7`)
			w.has(w.get("entities/stock/tea"), `"state":7`)
		}),
		{"entities", "cli"}: begun(entities, func(w *world) {
			w.has(w.cli.mustRun("call", "stock", "tea", "refill", "2"), "7")
			w.has(w.cli.mustRun("state", "stock", "tea"), "7")
		}),
		{"entities", "ui"}: begun(entities, func(w *world) { // it shows the instance of a key
			w.shows("instances?limit=200", `"instanceId":"@stock@tea"`, "get(`instances?${query(")
			w.shows("instances/~QHN0b2NrQHRlYQ/history", `"kind":"UpdateCompleted"`, "return '~' + btoa(raw)")
		}),
		{"entities", "kit"}:               inKit(entities, func(*driver, string) {}),
		{"entities", "export and import"}: imports(entities, "UpdateCompleted", `"name":"refill"`),
		{"entities", "linter"}:            lints("entities", "clock"),
	}
}

func cancellationCells() map[cell]check {
	return map[cell]check{
		{"cancellation", "client"}: effective(cancelling, func(w *world) {
			if e := w.event(one, history.CancelRequested); e.RequestedBy != "ann" || e.Message != "wrong file" {
				w.t.Errorf("requested: %+v", e)
			}
		}),
		{"cancellation", "http"}: begun(cancelling, func(w *world) {
			w.has(w.get("instances/"+one+"/cancellations"), `"reason":"requested"`, `"message":"wrong file"`,
				`"requestedBy":"ann"`, `"seenAt":"`, `"end":"stopped"`)
			w.start(other, "cancelled", "slow")
			w.post(http.StatusAccepted, "instances/"+other+"/cancel", `{"message":"typo"}`)
			w.pass(10 * time.Second)
			w.has(w.get("instances/"+other+"/cancellations"), `"message":"typo"`)
		}),
		{"cancellation", "cli"}: begun(cancelling, func(w *world) {
			w.has(w.cli.mustRun("why", one), "ann", `requested "wrong file"`, "+250ms", "stopped")
			w.start(other, "cancelled", "slow")
			w.cli.mustRun("cancel", other, "--message", "typo")
			w.pass(10 * time.Second)
			w.has(w.cli.mustRun("why", other), "typo")
		}),
		{"cancellation", "ui"}: begun(cancelling, func(w *world) {
			w.shows("instances/"+one+"/cancellations?limit=1000", `"end":"stopped"`,
				"stopped: 'stopped'", "/cancellations?", "requested: 'requested'")
			w.shows("instances/"+one+"/cancellations?limit=1000", `"message":"wrong file"`, "message: c.message",
				"instancePath(s.instanceId, '/cancel'), { message:")
		}),
		{"cancellation", "kit"}:               inKit(cancelling, func(*driver, string) {}),
		{"cancellation", "export and import"}: imports(cancelling, "CancelRequested", "wrong file", `"ann"`),
		{"cancellation", "linter"}:            lints("cancellation", "compensation"),
	}
}

func queryCells() map[cell]check {
	const request = `{"query":"count","input":"book"}`
	return map[cell]check{
		{"queries", "client"}: effective(querying, func(w *world) {
			_, err := w.sdk.Query(w.t.Context(), one, "cuont", "book")
			if e, ok := errors.AsType[*client.QueryError](err); !ok || !strings.Contains(e.Error(), "count") {
				w.t.Errorf("unknown query: %v", err)
			}
		}),
		{"queries", "http"}: begun(querying, func(w *world) {
			w.has(w.post(http.StatusOK, "instances/"+one+"/query", request), `"answer":1`)
		}),
		{"queries", "cli"}: begun(querying, func(w *world) {
			w.has(w.cli.mustRun("query", one, "count", `"book"`), "1\n")
		}),
		{"queries", "ui"}: begun(querying, func(w *world) {
			w.shows("instances/"+one, `"instanceId":"it"`, "instancePath(s.instanceId, '/query')", "said.answer")
			w.has(w.post(http.StatusOK, "instances/"+one+"/query", request), `"answer":1`)
		}),
		{"queries", "kit"}:               inKit(querying, func(*driver, string) {}),
		{"queries", "export and import"}: imports(querying),
		{"queries", "reconcile"}:         no("a query is an invocation; no queue holds it, and no history records it"),
		{"queries", "linter"}:            lints("queries", "query"),
	}
}

func detailCells() map[cell]check {
	const code = `{"code":51}`
	return map[cell]check{
		{"details", "client"}: effective(details, func(w *world) {
			p := w.pendingTask(one)
			if p.LastError == nil || string(p.LastError.Details) != code || p.LastHeartbeatAt.IsZero() {
				w.t.Errorf("pending: %+v, %+v", p, p.LastError)
			}
		}),
		{"details", "http"}: begun(details, func(w *world) {
			w.has(w.get("instances/"+one), `"details":`+code, `"lastHeartbeatAt":"`, `"customStatus":"paying"`)
		}),
		{"details", "cli"}: begun(details, func(w *world) {
			w.has(w.cli.mustRun("status", one), `"paying"`, "card declined")
			w.has(w.cli.mustRun("status", one, "--json"), `"details":`+code, `"lastHeartbeatAt":"`)
		}),
		{"details", "ui"}: begun(details, func(w *world) {
			w.shows("instances/"+one+"?limit=200", `"lastHeartbeatAt":"`, "if (p.lastHeartbeatAt) said.push")
			w.shows("instances/"+one+"?limit=200", `"customStatus":"paying"`,
				"payload('Custom status', s.customStatus)")
		}),
		{"details", "kit"}: inKit(details, func(d *driver, _ string) {
			if p := d.pendingTask(one); p.LastError == nil || string(p.LastError.Details) != code {
				d.t.Errorf("pending: %+v", p.LastError)
			}
		}),
		{"details", "export and import"}: imports(details, `"customStatus":"paying"`),
		{"details", "linter"}:            lints("details", "payload"),
	}
}

func compensationCells() map[cell]check {
	return map[cell]check{
		{"compensation", "client"}: effective(compensating, func(w *world) {
			w.wantStatus(one, client.StatusRunning) // until the undo function returns
		}),
		{"compensation", "http"}: begun(compensating, func(w *world) {
			w.has(w.get("instances/"+one+"/history"), `"input":"undo hotel"`)
			compensating.finish(w.driver)
			w.has(w.get("instances/"+one+"/result"), `"status":"Failed"`, `"message":"sold out"`)
		}),
		{"compensation", "cli"}: begun(compensating, func(w *world) {
			w.has(w.cli.mustRun("history", one), `"undo hotel"`)
			compensating.finish(w.driver)
			w.has(w.cli.mustRun("status", one), "Failed", "sold out")
		}),
		{"compensation", "ui"}: begun(compensating, func(w *world) {
			w.shows("instances/"+one+"/history", `"input":"undo hotel"`,
				"ActivityScheduled(e)", "payloadFields = ['input'")
		}),
		{"compensation", "kit"}: inKit(compensating, func(d *driver, _ string) {
			if n := d.out.runs("undo hotel"); n != 1 {
				d.t.Errorf("undone %d times", n)
			}
		}),
		{"compensation", "export and import"}: imports(compensating, `"input":"undo hotel"`),
		{"compensation", "linter"}:            lints("compensation", "compensation"),
	}
}
