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
	"github.com/perdure/perdure/schedule"
)

// matrixCells returns the matrix.
func matrixCells() map[cell]check {
	all := map[cell]check{}
	for feature, s := range map[string]*scenario{
		"codec":          codecScenario,
		"large payloads": largeScenario,
		"exclusive keys": exclusiveScenario,
		"inline":         inlineScenario,
		"restart":        restartScenario,
		"pause":          pauseScenario,
		"updates":        updateScenario,
		"tokens":         tokenScenario,
		"schedules":      scheduleScenario,
		"retention":      retentionScenario,
		"versions":       versionScenario,
		"entities":       entityScenario,
		"cancellation":   cancelScenario,
		"queries":        queryScenario,
		"details":        detailScenario,
		"compensation":   compensationScenario,
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
	for _, feature := range matrixFeatures {
		all[cell{feature, cliOverAPI}] = all[cell{feature, "cli"}]
	}
	all[cell{"large payloads", cliOverAPI}] = check{reason: "sweep needs direct access; http reads large payloads"}
	return all
}

// started tests a feature while an instance uses it.
func started(s *scenario, f func(w *world)) check {
	return check{run: withHub(s, func(w *world) {
		s.begin(w.driver)
		f(w)
	})}
}

// finished tests a feature while an instance uses it, and then finishes the scenario.
func finished(s *scenario, f func(w *world)) check {
	return started(s, func(w *world) {
		f(w)
		s.finish(w.driver)
	})
}

func inTestKit(s *scenario, f func(d *driver, document string)) check {
	return check{run: withTestKit(s, f)}
}

// verifies replays the instances of a scenario with perdure verify.
func verifies(s *scenario, open int) check {
	return started(s, func(w *world) { w.wantVerified(s.id(), open) })
}

// imports exports an instance and replays the document, which must contain data.
func imports(s *scenario, data ...string) check {
	return started(s, func(w *world) { w.wantImported(s.id(), data...) })
}

// reconciles loses all messages and timers while activities run. The scenario finishes after perdure reconcile.
func reconciles(s *scenario) check {
	return check{run: withHub(s, func(w *world) {
		w.state.hold.Store(true)
		s.begin(w.driver)
		w.loseMessages()
		w.cli.mustRun("reconcile", "--yes")
		w.state.hold.Store(false)
		w.serve()
		w.pass(time.Minute)
		s.finish(w.driver)
	})}
}

// lints requires a finding of a rule in a function of testdata/matrix.
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

// countingCodec counts the encoded documents.
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
		{"codec", "client"}: started(codecScenario, func(w *world) {
			codecScenario.finish(w.driver)
			s, err := w.cli.client.Status(w.t.Context(), firstID)
			if err != nil || s.Output != nil || s.EncodedOutput == nil || s.EncodedOutput.Codec != "turned" {
				w.t.Errorf("without the codec: %s, %+v, %v", s.Output, s.EncodedOutput, err)
			}
		}),
		{"codec", "http"}: started(codecScenario, func(w *world) {
			codecScenario.finish(w.driver)
			w.has(w.get("instances/"+firstID+"/result"), `"output":"did secret now"`)
			w.has(w.get("instances/"+firstID+"/history"), secret)
			for _, path := range []string{"/result", "/history"} {
				got := w.call(w.plain, http.StatusOK, http.MethodGet, "instances/"+firstID+path, "")
				w.has(got, "turned")
				w.lacks(got, secret)
			}
		}),
		{"codec", "cli"}: started(codecScenario, func(w *world) {
			codecScenario.finish(w.driver)
			for _, verb := range []string{"status", "history", "wait", "list"} {
				args := []string{verb, firstID}
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
		{"codec", "ui"}: started(codecScenario, func(w *world) {
			w.shows("instances/"+firstID+"/history", `"did secret"`, "payload('Input', first.input)")
			w.api = w.plain
			w.shows("instances/"+firstID+"/history", `"ref":"data:turned`,
				"v.ref.startsWith('data:')", "codec ${codec}")
		}),
		{"codec", "kit"}: {run: func(t *testing.T) {
			t.Helper()
			t.Run("env", func(t *testing.T) {
				codec, counted := &countingCodec{}, *codecScenario
				counted.codecs = []perdure.Codec{codec}
				withTestKit(&counted, func(*driver, string) {
					if codec.encoded.Load() == 0 {
						t.Error("the codec has encoded nothing")
					}
				})(t)
			})
			t.Run("replay", withHub(codecScenario, func(w *world) {
				codecScenario.begin(w.driver)
				document, code := []byte(w.export(firstID, "data:turned")), matrixCode(w.state, false)
				perduretest.Replay(w.t, code, document, perduretest.WithReplayCodecs(turned{}))
				if r := (&report{TB: w.t}); !r.fails(func() { perduretest.Replay(r, code, document) }) {
					w.t.Error("Replay reads an encoded history without its codec")
				}
			}))
		}},
		{"codec", "export and import"}: started(codecScenario, func(w *world) {
			w.wantImported(firstID, "data:turned")
			w.lacks(w.export(firstID), secret)
		}),
		{"codec", "linter"}: no("functions and clients have codecs; orchestrations, which the linter checks, do not"),
	}
}

func largeCells() map[cell]check {
	return map[cell]check{
		{"large payloads", "client"}: finished(largeScenario, func(w *world) {
			e := w.event(firstID, history.ActivityCompleted)
			if e.Result.StorageKey() == "" {
				w.t.Errorf("the result is not in the payload store: %.100s", e.Result)
			}
			e.EachPayload(func(p history.EventPayload) {
				if got, err := w.sdk.Payload(w.t.Context(), firstID, p); err != nil || len(got) != 300<<10+2 {
					w.t.Errorf("payload: %d bytes, %v", len(got), err)
				}
			})
		}),
		{"large payloads", "http"}: started(largeScenario, func(w *world) {
			w.has(w.get("instances/"+firstID+"/history"), `"ref":"object:`)
			largeScenario.finish(w.driver)
			w.has(w.get("instances/"+firstID+"/result"), `xxx now"`)
		}),
		{"large payloads", "cli"}: started(largeScenario, func(w *world) {
			w.has(w.cli.mustRun("history", firstID), "in the payload store at x/")
			largeScenario.finish(w.driver)
			w.has(w.cli.mustRun("wait", firstID), `xxx now"`)
			w.cli.mustRun("sweep")
			w.wantStatus(firstID, client.StatusCompleted)
		}),
		{"large payloads", "ui"}: started(largeScenario, func(w *world) {
			w.shows("instances/"+firstID+"/history", `"ref":"object:`, "'in the payload store'")
		}),
		{"large payloads", "kit"}: inTestKit(largeScenario, func(d *driver, _ string) {
			if e := d.event(firstID, history.ActivityCompleted); e.Result.StorageKey() == "" {
				d.t.Errorf("the result is not in the payload store: %.100s", e.Result)
			}
		}),
		{"large payloads", "export and import"}: started(largeScenario, func(w *world) {
			// An import does not read the bucket, so the instance counts as unread.
			w.wantImportedAs(firstID, map[string]int{"matrix": cli.CodeError}, `"ref":"object:`)
		}),
		{"large payloads", "linter"}: no("the size of a payload is known only at run time"),
	}
}

func exclusiveCells() map[cell]check {
	const queue = "default.fifo"
	return map[cell]check{
		{"exclusive keys", "client"}: finished(exclusiveScenario, func(w *world) {
			if p := w.pendingTask(secondID); p.Queue != queue {
				w.t.Errorf("pending: %+v", p)
			}
			if e := w.event(secondID, history.ActivityScheduled); e.ExclusiveKey != "account 7" {
				w.t.Errorf("scheduled: %+v", e)
			}
		}),
		{"exclusive keys", "http"}: started(exclusiveScenario, func(w *world) {
			w.has(w.get("instances/"+secondID), `"queue":"`+queue+`"`)
			w.has(w.get("instances/"+secondID+"/history"), `"exclusiveKey":"account 7"`)
		}),
		{"exclusive keys", "cli"}: started(exclusiveScenario, func(w *world) {
			w.has(w.cli.mustRun("status", secondID), "Pending: 1", stepActivity, "in queue "+queue)
			w.has(w.cli.mustRun("status", secondID, "--json"), `"queue":"`+queue+`"`)
			w.has(w.cli.mustRun("history", secondID), `exclusive key "account 7"`)
			w.has(w.cli.mustRun("history", secondID, "--json"), `"exclusiveKey":"account 7"`)
		}),
		{"exclusive keys", "ui"}: started(exclusiveScenario, func(w *world) {
			w.shows("instances/"+secondID+"/history", `"queue":"`+queue+`"`, "fact('Queue', e?.queue)")
		}),
		{"exclusive keys", "kit"}:               inTestKit(exclusiveScenario, func(*driver, string) {}),
		{"exclusive keys", "verify"}:            verifies(exclusiveScenario, 2),
		{"exclusive keys", "export and import"}: imports(exclusiveScenario, `"exclusiveKey":"account 7"`),
		{"exclusive keys", "linter"}:            no("a key is a value, which is known only at run time"),
	}
}

func inlineCells() map[cell]check {
	wantInline := func(d *driver) {
		if e := d.event(firstID, history.ActivityCompleted); !e.Inline {
			d.t.Errorf("did not run inline: %+v", e)
		}
	}
	return map[cell]check{
		{"inline", "client"}: finished(inlineScenario, func(w *world) { wantInline(w.driver) }),
		{"inline", "http"}: started(inlineScenario, func(w *world) {
			if n := strings.Count(w.get("instances/"+firstID+"/history"), `"inline":true`); n != 2 {
				w.t.Errorf("%d inline events, want 2", n)
			}
		}),
		{"inline", "cli"}: started(inlineScenario, func(w *world) {
			if n := strings.Count(w.cli.mustRun("history", firstID), "inline \""); n != 2 {
				w.t.Errorf("%d inline events, want 2: %s", n, w.cli.out.String())
			}
		}),
		{"inline", "ui"}: started(inlineScenario, func(w *world) {
			w.shows("instances/"+firstID+"/history", `"inline":true`,
				"if (e.inline) parts.push('inline')", "fact('Inline'")
		}),
		{"inline", "kit"}:               inTestKit(inlineScenario, func(d *driver, _ string) { wantInline(d) }),
		{"inline", "export and import"}: imports(inlineScenario, `"inline":true`),
		{"inline", "linter"}:            no("an inline call follows the same rules as any other call"),
	}
}

func restartCells() map[cell]check {
	wantRestarted := func(w *world, id string) {
		w.pass(10 * time.Second)
		w.raiseGo(id, "again")
		w.wantOutput(id, "did second again")
	}
	return map[cell]check{
		{"restart", "client"}: started(restartScenario, func(w *world) {
			restartScenario.finish(w.driver)
			id, err := w.sdk.Restart(w.t.Context(), firstID)
			w.check(err)
			wantRestarted(w, id)
			result := w.event(firstID, history.ActivityCompleted)
			id, err = w.sdk.Restart(w.t.Context(), firstID, client.FromEvent(result.ID))
			w.check(err)
			wantRestarted(w, id)
			if n := w.state.runs("second"); n != 2 {
				w.t.Errorf("the activity ran %d times; a restart from its result runs it no more", n)
			}
		}),
		{"restart", "http"}: started(restartScenario, func(w *world) {
			restartScenario.finish(w.driver)
			w.has(w.get("instances/"+firstID+"/executions"), `"number":1`, `"number":2`)
			w.post(http.StatusAccepted, "instances/"+firstID+"/restart", `{"instanceId":"again"}`)
			wantRestarted(w, "again")
		}),
		{"restart", "cli"}: started(restartScenario, func(w *world) {
			restartScenario.finish(w.driver)
			if n := strings.Count(w.cli.mustRun("executions", firstID), "\n"); n != 3 {
				w.t.Errorf("executions: %s", w.cli.out.String())
			}
			wantRestarted(w, strings.TrimSpace(w.cli.mustRun("restart", firstID)))
		}),
		{"restart", "ui"}: started(restartScenario, func(w *world) {
			restartScenario.finish(w.driver)
			w.shows("instances/"+firstID+"/executions?limit=200", `"number":2`, "'/executions?limit=200'")
			w.shows("instances/"+firstID, `"executionNumber":2`,
				"instancePath(s.instanceId, '/restart'), at ? { from: Number(at) } : {}")
			w.post(http.StatusAccepted, "instances/"+firstID+"/restart", `{"from":4}`)
		}),
		{"restart", "kit"}: inTestKit(restartScenario, func(d *driver, _ string) {}),
		{"restart", "export and import"}: started(restartScenario, func(w *world) {
			w.raiseGo(firstID, "on")
			w.wantImported(firstID, `"number":1`, `"number":2`, "OrchestrationContinuedAsNew")
		}),
		{"restart", "linter"}: lints("restart", "continueasnew"),
	}
}

func pauseCells() map[cell]check {
	// resumeAndPause calls functions that resume the instance and pause it again.
	resumeAndPause := func(w *world, resume, pause func()) {
		w.t.Helper()
		resume()
		w.pass(10 * time.Second)
		w.wantStatus(firstID, client.StatusRunning)
		pause()
		w.pass(10 * time.Second)
		if s := w.wantStatus(firstID, client.StatusPaused); s.Paused.Message != "again" {
			w.t.Errorf("paused: %+v", s.Paused)
		}
	}
	overHTTP := func(w *world) {
		resumeAndPause(w, func() { w.post(http.StatusAccepted, "instances/"+firstID+"/resume", "") }, func() {
			w.post(http.StatusAccepted, "instances/"+firstID+"/pause", `{"message":"again"}`)
		})
	}
	return map[cell]check{
		{"pause", "client"}: finished(pauseScenario, func(*world) {}),
		{"pause", "http"}: started(pauseScenario, func(w *world) {
			w.has(w.get("instances/"+firstID), `"paused":{`, `"message":"audit"`)
			w.has(w.get("instances?status=Paused"), `"message":"audit"`)
			overHTTP(w)
		}),
		{"pause", "cli"}: started(pauseScenario, func(w *world) {
			w.has(w.cli.mustRun("status", firstID), "Paused", `"audit"`)
			w.has(w.cli.mustRun("list", "--status", "Paused"), firstID+" ", "\n      paused since ", ` "audit"`)
			w.has(w.cli.mustRun("list", "--status", "Paused", "--json"), `"message":"audit"`)
			resumeAndPause(w, func() { w.cli.mustRun("resume", firstID) }, func() {
				w.cli.mustRun("pause", firstID, "--message", "again")
			})
			w.raiseGo(firstID, "now")
			history := w.cli.mustRun("history", firstID)
			w.has(history, "event go")
			w.lacks(history, "event go,\n")
		}),
		{"pause", "ui"}: started(pauseScenario, func(w *world) {
			w.shows("instances/"+firstID+"?pending=false", `"message":"audit"`,
				"if (s.paused) parts.push(paused(s.paused))", "instancePath(s.instanceId, '/pause')",
				"instancePath(s.instanceId, '/resume')")
			overHTTP(w)
		}),
		{"pause", "kit"}:               inTestKit(pauseScenario, func(*driver, string) {}),
		{"pause", "export and import"}: imports(pauseScenario, "ExecutionSuspended", "audit"),
		{"pause", "linter"}:            no("clients pause instances; orchestrations, which the linter reads, do not"),
	}
}

func updateCells() map[cell]check {
	return map[cell]check{
		{"updates", "client"}: finished(updateScenario, func(*world) {}),
		{"updates", "http"}: started(updateScenario, func(w *world) {
			const path = "instances/" + firstID + "/update"
			w.has(w.post(http.StatusOK, path, `{"update":"address","input":"High St"}`), `"result":"did High St"`)
			w.has(w.post(http.StatusUnprocessableEntity, path, `{"update":"address","input":""}`),
				`"code":"update_rejected"`, "no address")
		}),
		{"updates", "cli"}: started(updateScenario, func(w *world) {
			w.has(w.cli.mustRun("update", firstID, "address", `"High St"`), `"did High St"`)
			w.cli.wantError(cli.CodeError, "no address", "update", firstID, "address", `""`)
		}),
		{"updates", "ui"}: started(updateScenario, func(w *world) {
			// The web UI sends no updates.
			w.shows("instances/"+firstID+"/history", `"kind":"UpdateAccepted"`,
				"Updates: ['UpdateReceived', 'UpdateAccepted'")
		}),
		{"updates", "kit"}:               inTestKit(updateScenario, func(*driver, string) {}),
		{"updates", "export and import"}: imports(updateScenario, "UpdateAccepted", "UpdateCompleted"),
		{"updates", "linter"}:            lints("updates", "query"),
	}
}

func tokenCells() map[cell]check {
	wantCompleted := func(w *world) {
		w.pass(10 * time.Second)
		w.raiseGo(firstID, "now")
		w.wantOutput(firstID, "carried now")
	}
	return map[cell]check{
		{"tokens", "client"}: finished(tokenScenario, func(w *world) {
			if p := w.pendingTask(firstID); p.ResultPendingSince.IsZero() {
				w.t.Errorf("pending: %+v", p)
			}
		}),
		{"tokens", "http"}: started(tokenScenario, func(w *world) {
			w.has(w.get("instances/"+firstID), `"handedOverAt":"`)
			w.post(http.StatusOK, "activities/heartbeat", `{"token":"`+w.state.token+`"}`)
			w.post(http.StatusAccepted, "activities/complete", `{"token":"`+w.state.token+`","result":"carried"}`)
			wantCompleted(w)
		}),
		{"tokens", "cli"}: started(tokenScenario, func(w *world) {
			w.has(w.cli.mustRun("status", firstID), "waiting for asynchronous completion")
			w.has(w.cli.mustRun("heartbeat", w.state.token, "--details", `"half"`), "continue")
			w.has(w.cli.mustRun("status", firstID), ", heartbeat 0ms ago")
			w.cli.mustRun("complete", w.state.token, "--result", `"carried"`)
			wantCompleted(w)
		}),
		{"tokens", "ui"}: started(tokenScenario, func(w *world) {
			// The web UI does not receive the token.
			w.shows("instances/"+firstID+"?limit=200", `"handedOverAt":"`, "if (p.handedOverAt) return")
		}),
		{"tokens", "kit"}: inTestKit(tokenScenario, func(d *driver, _ string) {
			if p := d.pendingTask(firstID); p.ResultPendingSince.IsZero() {
				d.t.Errorf("pending: %+v", p)
			}
		}),
		{"tokens", "export and import"}: imports(tokenScenario, `"name":"step"`),
		{"tokens", "linter"}:            no("activities return ErrPending; the linter does not check activities"),
	}
}

func scheduleCells() map[cell]check {
	return map[cell]check{
		{"schedules", "client"}: started(scheduleScenario, func(w *world) {
			scheduleScenario.finish(w.driver)
			run, err := w.sdk.Restart(w.t.Context(), firstRun)
			w.check(err)
			if due, ok := schedule.DueTime(run); !ok || schedule.RunID(scheduleID, due) != firstRun {
				w.t.Errorf("restarted run %s: due %v, %v", run, due, ok)
			}
			w.check(w.sdk.Terminate(w.t.Context(), secondRun, ""))
			w.check(w.sdk.Schedules().Delete(w.t.Context(), scheduleID))
			w.pass(time.Minute)
			w.wantStatus(scheduleInstance, client.StatusCompleted)
			w.wantNoRestart(scheduleInstance, "schedule put")
		}),
		{"schedules", "http"}: finished(scheduleScenario, func(w *world) {
			w.has(w.post(http.StatusBadRequest, "instances/~c2NoZWR1bGU6bmlnaHRseQ/restart", ""),
				`"code":"invalid_request"`, `"field":"instanceId"`, "schedule put")
			w.has(w.get("schedules"), `"id":"nightly"`)
			w.has(w.get("schedules/"+scheduleID), `"started":1`, `"next":"2000-01-02T02:00:00Z"`)
			w.post(http.StatusAccepted, "schedules/"+scheduleID+"/pause", `{"message":"holiday"}`)
			w.pass(10 * time.Second)
			w.has(w.get("schedules/"+scheduleID), `"holiday"`)
			w.post(http.StatusAccepted, "schedules/"+scheduleID+"/resume", "")
			w.call(w.api, http.StatusAccepted, http.MethodPut, "schedules/weekly",
				`{"orchestration":"plain","when":"@weekly","input":"week"}`)
			w.pass(10 * time.Second)
			w.has(w.get("schedules"), `"id":"weekly"`)
		}),
		{"schedules", "cli"}: finished(scheduleScenario, func(w *world) {
			w.cli.wantError(cli.CodeError, "use schedule put", "restart", scheduleInstance)
			w.lacks(w.cli.mustRun("status", scheduleInstance), "perdure raise")
			w.has(w.cli.mustRun("schedule", "list"), scheduleID)
			w.has(w.cli.mustRun("schedule", "show", scheduleID), "1 started", "2000-01-02T02:00:00Z")
			w.has(w.cli.mustRun("list", "--parent", scheduleInstance), firstRun)
			w.cli.mustRun("schedule", "put", "weekly", "--orchestration", "plain", "--expression", "@weekly")
			w.pass(10 * time.Second)
			w.has(w.cli.mustRun("schedule", "list"), "weekly")
		}),
		{"schedules", "ui"}: started(scheduleScenario, func(w *world) {
			w.shows("schedules?limit=200", `"id":"nightly"`, "get(`schedules?${query(",
				"listURL(['parent', s.instanceId])")
			w.shows("instances?parent=schedule%3Anightly", `"instanceId":"`+firstRun+`"`, "['parent', view.id]")
			w.shows("instances/~c2NoZWR1bGU6bmlnaHRseQ?pending=false", `"status":"Running"`, "return '~' + btoa(raw)")
		}),
		{"schedules", "kit"}:               inTestKit(scheduleScenario, func(*driver, string) {}),
		{"schedules", "verify"}:            verifies(scheduleScenario, 2),
		{"schedules", "export and import"}: imports(scheduleScenario, `"parent":{"instanceId":"`+scheduleInstance+`"`),
		{"schedules", "linter"}:            no("stacks and clients create schedules; orchestrations do not"),
	}
}

func retentionCells() map[cell]check {
	// beforeAndAfter tests an interface before and after the retention ends.
	beforeAndAfter := func(before, after func(w *world)) check {
		return started(retentionScenario, func(w *world) {
			before(w)
			retentionScenario.finish(w.driver)
			after(w)
		})
	}
	return map[cell]check{
		{"retention", "client"}: beforeAndAfter(func(*world) {}, func(w *world) {
			all, err := client.Collect(w.sdk.List(w.t.Context(), client.ListQuery{}))
			if err != nil || len(all) != 0 {
				w.t.Errorf("after the retention, the list has %+v, %v", all, err)
			}
		}),
		{"retention", "http"}: beforeAndAfter(func(w *world) {
			w.has(w.get("instances"), `"instanceId":"it"`)
		}, func(w *world) {
			w.lacks(w.get("instances"), `"instanceId":"it"`)
			w.call(w.api, http.StatusNotFound, http.MethodGet, "instances/"+firstID+"/history", "")
		}),
		{"retention", "cli"}: beforeAndAfter(func(w *world) {
			w.has(w.cli.mustRun("list"), firstID+" ")
		}, func(w *world) {
			w.lacks(w.cli.mustRun("list"), firstID+" ")
			w.cli.wantError(cli.CodeError, "not found", "status", firstID)
		}),
		{"retention", "ui"}: beforeAndAfter(func(w *world) {
			w.shows("instances?limit=200", `"instanceId":"it"`, "get(`instances?${query(")
		}, func(w *world) {
			w.lacks(w.get("instances?limit=200"), `"instanceId":"it"`)
			w.shows("instances?limit=200", "items", "'The instance may have been purged. '")
			w.call(w.api, http.StatusNotFound, http.MethodGet, "instances/"+firstID+"?pending=false", "")
		}),
		{"retention", "kit"}:    inTestKit(retentionScenario, func(*driver, string) {}),
		{"retention", "verify"}: no("verify replays instances that have not ended; retention is for those that have"),
		{"retention", "export and import"}: beforeAndAfter(func(w *world) { w.wantImported(firstID) }, func(w *world) {
			w.cli.wantError(cli.CodeError, "not found", "export", firstID)
		}),
		{"retention", "linter"}: no("a retention is an option of a registration, and every value is valid"),
	}
}

func versionCells() map[cell]check {
	return map[cell]check{
		{"versions", "client"}: finished(versionScenario, func(w *world) {
			all, err := client.Collect(w.sdk.List(w.t.Context(), client.ListQuery{Version: "0"}))
			if err != nil || len(all) != 1 || all[0].InstanceID != secondID {
				w.t.Errorf("version 0: %+v, %v", all, err)
			}
		}),
		{"versions", "http"}: started(versionScenario, func(w *world) {
			got := w.get("instances?version=0")
			w.has(got, `"instanceId":"other"`)
			w.lacks(got, `"instanceId":"it"`)
			w.post(http.StatusAccepted, "orchestrations/versioned", `{"instanceId":"third","version":"0"}`)
			w.pass(10 * time.Second)
			w.has(w.get("instances/third"), `"version":"0"`)
		}),
		{"versions", "cli"}: started(versionScenario, func(w *world) {
			w.has(w.cli.mustRun("versions", "--json"), `"orchestration":"versioned","version":"0"`,
				`"orchestration":"versioned","version":"1"`)
			w.has(w.cli.mustRun("versions", "--changes"), "gifts")
			w.lacks(w.cli.mustRun("history", firstID), "version 1 version 1")
			w.lacks(w.cli.mustRun("list", "--version", "0"), firstID+" ")
		}),
		{"versions", "ui"}: started(versionScenario, func(w *world) {
			w.shows("instances?version=0&limit=200", `"instanceId":"other"`, "version: 'version of the orchestration'")
			w.lacks(w.get("instances?version=0&limit=200"), `"instanceId":"it"`)
			w.shows("instances/"+firstID+"/history", `"change":"gifts"`, "${e.change}: version ${e.version}")
		}),
		{"versions", "kit"}: inTestKit(versionScenario, func(d *driver, _ string) {
			if e := d.event(firstID, history.VersionMarked); e.ChangeID != "gifts" || e.Version != "1" {
				d.t.Errorf("marked: %+v", e)
			}
		}),
		{"versions", "verify"}:            verifies(versionScenario, 2),
		{"versions", "export and import"}: imports(versionScenario, `"change":"gifts"`),
		{"versions", "linter"}:            lints("versions", "change"),
	}
}

func entityCells() map[cell]check {
	return map[cell]check{
		{"entities", "client"}: finished(entityScenario, func(w *world) {
			w.check(w.sdk.Terminate(w.t.Context(), "@stock@tea", ""))
			w.pass(time.Minute)
			w.wantNoRestart("@stock@tea", "purge it")
			w.check(w.sdk.Purge(w.t.Context(), "@stock@tea"))
		}),
		{"entities", "http"}: started(entityScenario, func(w *world) {
			w.has(w.post(http.StatusBadRequest, "instances/~QHN0b2NrQHRlYQ/restart", ""),
				`"code":"invalid_request"`, `"field":"instanceId"`, "purge it")
			w.has(w.post(http.StatusOK, "entities/stock/tea/refill", `{"input":2}`), `"result":7`)
			w.has(w.get("entities/stock/tea"), `"state":7`)
		}),
		{"entities", "cli"}: started(entityScenario, func(w *world) {
			w.cli.wantError(cli.CodeError, "purge it", "restart", "@stock@tea")
			w.has(w.cli.mustRun("call", "stock", "tea", "refill", "2"), "7")
			w.has(w.cli.mustRun("state", "stock", "tea"), "7")
		}),
		{"entities", "ui"}: started(entityScenario, func(w *world) {
			w.shows("entities/stock/tea", `"state":`, "get(`entities/${idPath(entity)}/${idPath(key)}`",
				"payload('State', state")
			w.shows("instances?limit=200", `"instanceId":"@stock@tea"`, "get(`instances?${query(")
			w.shows("instances/~QHN0b2NrQHRlYQ/history", `"kind":"UpdateCompleted"`, "return '~' + btoa(raw)")
		}),
		{"entities", "kit"}:               inTestKit(entityScenario, func(*driver, string) {}),
		{"entities", "export and import"}: imports(entityScenario, "UpdateCompleted", `"name":"refill"`),
		{"entities", "linter"}:            lints("entities", "clock"),
	}
}

func cancellationCells() map[cell]check {
	return map[cell]check{
		{"cancellation", "client"}: finished(cancelScenario, func(w *world) {
			if e := w.event(firstID, history.CancelRequested); e.RequestedBy != "ann" || e.Message != "wrong file" {
				w.t.Errorf("requested: %+v", e)
			}
		}),
		{"cancellation", "http"}: started(cancelScenario, func(w *world) {
			w.has(w.get("instances/"+firstID+"/cancellations"), `"reason":"requested"`, `"message":"wrong file"`,
				`"requestedBy":"ann"`, `"seenAt":"`, `"end":"stopped"`)
			w.start(secondID, "cancelled", "slow")
			w.post(http.StatusAccepted, "instances/"+secondID+"/cancel", `{"message":"typo"}`)
			w.pass(10 * time.Second)
			w.has(w.get("instances/"+secondID+"/cancellations"), `"message":"typo"`)
		}),
		{"cancellation", "cli"}: started(cancelScenario, func(w *world) {
			w.has(w.cli.mustRun("why", firstID), "ann", `requested "wrong file"`, "+250ms", "stopped")
			w.start(secondID, "cancelled", "slow")
			w.cli.mustRun("cancel", secondID, "--message", "typo")
			w.pass(10 * time.Second)
			w.has(w.cli.mustRun("why", secondID), "typo")
		}),
		{"cancellation", "ui"}: started(cancelScenario, func(w *world) {
			w.shows("instances/"+firstID+"/cancellations?limit=1000", `"end":"stopped"`,
				"stopped: 'stopped'", "/cancellations?", "requested: 'requested'")
			w.shows("instances/"+firstID+"/cancellations?limit=1000", `"message":"wrong file"`, "message: c.message",
				"instancePath(s.instanceId, '/cancel'), { message:")
		}),
		{"cancellation", "kit"}:               inTestKit(cancelScenario, func(*driver, string) {}),
		{"cancellation", "export and import"}: imports(cancelScenario, "CancelRequested", "wrong file", `"ann"`),
		{"cancellation", "linter"}:            lints("cancellation", "compensation"),
	}
}

func queryCells() map[cell]check {
	const request = `{"query":"count","input":"book"}`
	return map[cell]check{
		{"queries", "client"}: finished(queryScenario, func(w *world) {
			_, err := w.sdk.Query(w.t.Context(), firstID, "cuont", "book")
			if e, ok := errors.AsType[*client.QueryError](err); !ok || !strings.Contains(e.Error(), "count") {
				w.t.Errorf("unknown query: %v", err)
			}
		}),
		{"queries", "http"}: started(queryScenario, func(w *world) {
			w.has(w.post(http.StatusOK, "instances/"+firstID+"/query", request), `"answer":1`)
		}),
		{"queries", "cli"}: started(queryScenario, func(w *world) {
			w.has(w.cli.mustRun("query", firstID, "count", `"book"`), "1\n")
		}),
		{"queries", "ui"}: started(queryScenario, func(w *world) {
			w.shows("instances/"+firstID, `"instanceId":"it"`, "instancePath(s.instanceId, '/query')", "said.answer")
			w.has(w.post(http.StatusOK, "instances/"+firstID+"/query", request), `"answer":1`)
		}),
		{"queries", "kit"}:               inTestKit(queryScenario, func(*driver, string) {}),
		{"queries", "export and import"}: imports(queryScenario),
		{"queries", "reconcile"}:         no("a query is an invocation; no queue holds it, and no history records it"),
		{"queries", "linter"}:            lints("queries", "query"),
	}
}

func detailCells() map[cell]check {
	const code = `{"code":51}`
	return map[cell]check{
		{"details", "client"}: finished(detailScenario, func(w *world) {
			p := w.pendingTask(firstID)
			if p.LastError == nil || string(p.LastError.Details) != code || p.LastHeartbeatAt.IsZero() {
				w.t.Errorf("pending: %+v, %+v", p, p.LastError)
			}
		}),
		{"details", "http"}: started(detailScenario, func(w *world) {
			w.has(w.get("instances/"+firstID), `"details":`+code, `"lastHeartbeatAt":"`, `"customStatus":"paying"`)
		}),
		{"details", "cli"}: started(detailScenario, func(w *world) {
			w.has(w.cli.mustRun("status", firstID), `"paying"`, "card declined", "details: "+code)
			w.has(w.cli.mustRun("status", firstID, "--json"), `"details":`+code, `"lastHeartbeatAt":"`)
		}),
		{"details", "ui"}: started(detailScenario, func(w *world) {
			w.shows("instances/"+firstID+"?limit=200", `"lastHeartbeatAt":"`, "if (p.lastHeartbeatAt) said.push")
			w.shows("instances/"+firstID+"?limit=200", `"customStatus":"paying"`,
				"payload('Custom status', s.customStatus)")
			w.shows("instances/"+firstID+"?limit=200", `"details":`+code, "said.push(`details ${")
		}),
		{"details", "kit"}: inTestKit(detailScenario, func(d *driver, _ string) {
			if p := d.pendingTask(firstID); p.LastError == nil || string(p.LastError.Details) != code {
				d.t.Errorf("pending: %+v", p.LastError)
			}
		}),
		{"details", "export and import"}: imports(detailScenario, `"customStatus":"paying"`),
		{"details", "linter"}:            lints("details", "payload"),
	}
}

func compensationCells() map[cell]check {
	return map[cell]check{
		{"compensation", "client"}: finished(compensationScenario, func(w *world) {
			w.wantStatus(firstID, client.StatusRunning) // until the undo function returns
		}),
		{"compensation", "http"}: started(compensationScenario, func(w *world) {
			w.has(w.get("instances/"+firstID+"/history"), `"input":"undo hotel"`)
			compensationScenario.finish(w.driver)
			w.has(w.get("instances/"+firstID+"/result"), `"status":"Failed"`, `"message":"sold out"`)
		}),
		{"compensation", "cli"}: started(compensationScenario, func(w *world) {
			w.has(w.cli.mustRun("history", firstID), `"undo hotel"`)
			compensationScenario.finish(w.driver)
			w.has(w.cli.mustRun("status", firstID), "Failed", "sold out")
		}),
		{"compensation", "ui"}: started(compensationScenario, func(w *world) {
			w.shows("instances/"+firstID+"/history", `"input":"undo hotel"`,
				"ActivityScheduled(e)", "payloadFields = ['input'")
		}),
		{"compensation", "kit"}: inTestKit(compensationScenario, func(d *driver, _ string) {
			if n := d.state.runs("undo hotel"); n != 1 {
				d.t.Errorf("undone %d times", n)
			}
		}),
		{"compensation", "export and import"}: imports(compensationScenario, `"input":"undo hotel"`),
		{"compensation", "linter"}:            lints("compensation", "compensation"),
	}
}
