package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
)

// begin runs the test with a new run.
func (w *world) begin(ctx context.Context, o options) (*Report, error) {
	o.architecture = "arm64"
	return w.run(ctx, newRunID(w.clock), o)
}

func TestRun_complete_leavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	report, err := w.begin(t.Context(), options{})
	if err != nil {
		t.Fatal(err)
	}
	if left := w.left(); len(left) > 0 || len(report.Remaining) > 0 {
		t.Errorf("left %v, reported %v", left, report.Remaining)
	}
	run := runID(report.Run)
	created := w.find("id:" + run.stack())
	if created == nil || created.Tags[Tag] != report.Run || w.tested == nil ||
		w.tested.physical("Payloads") != payloads+run.stack() {
		t.Errorf("created %+v, tested %+v", created, w.tested)
	}
	if report.Region != region || report.Account != number || report.StartedAt != startOfTest || report.Minutes <= 0 {
		t.Errorf("report %+v", report)
	}
}

// faults are errors of calls, and interruptions.
var faults = map[string]func(w *world, cancel func()) error{
	"error": func(*world, func()) error { return errFault },
	"throttling": func(*world, func()) error {
		return &deployment.APIError{Operation: "call", Code: "Throttling", Status: 400}
	},
	"refusal": func(*world, func()) error {
		return &deployment.APIError{Operation: "call", Code: "ValidationError", Status: 400}
	},
	"interruption": func(w *world, cancel func()) error {
		cancel()
		select {
		case w.signals <- os.Interrupt:
		default:
		}
		return nil
	},
}

// Each call of a run fails or is interrupted, before or after it took effect. Nothing is left, or the run reports it
// and the next run removes it.
func TestRun_faultAtAnyCall_leavesNothingUnreported(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				for _, lost := range []bool{false, true} {
					w := newWorld(t)
					if !w.faultAt(t, n, lost, fault) {
						if n < 20 {
							t.Fatalf("a run has only the calls %v", w.calls)
						}
						return
					}
				}
			}
		})
	}
}

// faultAt runs the test with a fault at a call. It returns false if the run makes fewer calls.
func (w *world) faultAt(t *testing.T, n int, lost bool, fault func(w *world, cancel func()) error) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hit := false
	hook := func(string) error {
		if len(w.calls) == n && !hit {
			hit = true
			return fault(w, cancel)
		}
		return nil
	}
	if w.before = hook; lost {
		w.before, w.after = nil, hook
	}
	report, err := w.begin(ctx, options{})
	where := fmt.Sprintf("call %d, %s, lost %t", n, w.calls[min(n, len(w.calls))-1], lost)
	_, reported := errors.AsType[*RemainsError](err)
	if left := w.left(); len(left) > 0 && (!reported || len(report.Remaining) == 0) {
		t.Errorf("%s: left %v, got %v", where, left, err)
	}
	if reported && !strings.Contains(err.Error(), "perdure selftest --remove "+report.Run) {
		t.Errorf("%s: got %v", where, err)
	}
	w.next(t)
	if left := w.left(); len(left) > 0 {
		t.Errorf("%s: the next run leaves %v", where, left)
	}
	return hit
}

// A process that dies at any call reports nothing. The next run removes what it created.
func TestRun_deadAtAnyCall_nextRunRemovesEverything(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		w := newWorld(t)
		dead := false
		w.before = func(string) error {
			if dead = dead || len(w.calls) >= n; dead {
				return errFault
			}
			return nil
		}
		_, err := w.begin(t.Context(), options{})
		if err == nil {
			if n < 20 {
				t.Fatalf("a run has only the calls %v", w.calls)
			}
			return
		}
		where := fmt.Sprintf("call %d, %s", n, w.calls[n-1])
		w.next(t)
		if left := w.left(); len(left) > 0 {
			t.Errorf("%s: the next run leaves %v", where, left)
		}
	}
}

func TestRun_credentialsExpire_reportsRemovalCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	expired := false
	w.before = func(call string) error {
		if expired = expired || call == "test"; expired {
			return &deployment.APIError{Operation: "call", Code: "ExpiredToken", Status: 403}
		}
		return nil
	}
	report, err := w.begin(t.Context(), options{})
	if err == nil || !strings.Contains(err.Error(), "renew the AWS credentials") ||
		!strings.Contains(err.Error(), "resources remain in account 123456789012, region eu-west-1 and cost money; "+
			"remove them with perdure selftest --remove "+report.Run) {
		t.Errorf("got %v", err)
	}
	w.before = nil
	if err := w.remove(t.Context(), runID(report.Run)); err != nil || len(w.left()) > 0 {
		t.Errorf("renewed credentials: got %v, left %v", err, w.left())
	}
}

func TestRun_failedCreation_isRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failed = true
	_, err := w.begin(t.Context(), options{})
	if _, ok := errors.AsType[*deployment.FailedError](err); !ok || w.tested != nil {
		t.Errorf("got %v, tested %+v", err, w.tested)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// The first interruption ends the test, the second one the removal.
func TestRun_secondInterruption_endsRemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.before = func(call string) error {
		switch call {
		case "test":
			cancel()
		case "DeleteStack":
			w.signals <- os.Interrupt
		}
		return nil
	}
	w.sleep = func(ctx context.Context, _ time.Duration) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	w.waits(t)
	_, err := w.begin(ctx, options{})
	remains, ok := errors.AsType[*RemainsError](err)
	if !ok || !errors.Is(remains, errInterrupted) || len(w.left()) == 0 {
		t.Errorf("got %v, left %v", err, w.left())
	}
}

// waits lets the deployment continue without a sleep.
func (w *world) waits(t *testing.T) {
	t.Helper()
	sleep := w.sleep
	w.sleep = func(ctx context.Context, d time.Duration) error {
		if !slices.Contains(w.calls, "test") {
			return nil
		}
		return sleep(ctx, d)
	}
}

// Without an earlier interruption, the first one during the removal does not end it.
func TestRun_interruptionDuringRemoval_continues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := false
	w.before = func(call string) error {
		if call == "DeleteStack" && !sent {
			sent = true
			w.signals <- os.Interrupt
		}
		return nil
	}
	if _, err := w.begin(t.Context(), options{}); err != nil || len(w.left()) > 0 {
		t.Errorf("got %v, left %v", err, w.left())
	}
}

func TestRun_keep_leavesAndReportsResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	report, err := w.begin(t.Context(), options{keep: true})
	if err != nil || len(report.Remaining) != 2 || len(w.left()) != 3 { // with the bucket of the stack
		t.Errorf("got %v, reported %v, left %v", err, report.Remaining, w.left())
	}
}

func TestFound_onlyResourcesOfRuns_areReturned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := newRunID(w.clock)
	add := func(name, status string, tags map[string]string) {
		w.fakeAccount.stacks[name] = &stack{Stack: deployment.Stack{Name: name, Status: status, Tags: tags}}
	}
	add(run.stack()+"x", "CREATE_COMPLETE", map[string]string{Tag: string(run)}) // a copied tag
	add("perdure-selftest-orders", "REVIEW_IN_PROGRESS", nil)
	add(newRunID(w.clock.Add(time.Hour)).stack(), "CREATE_COMPLETE", nil) // without the tag
	w.fakeAccount.buckets[bucketPrefix(number, region)+"orders"] = nil
	w.fakeAccount.buckets[bucketPrefix(number, "eu-west-2")+string(run)] = nil
	if found, err := w.found(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
	add(run.stack(), "CREATE_COMPLETE", map[string]string{Tag: string(run)})
	w.fakeAccount.buckets[bucketPrefix(number, region)+string(run)] = nil
	if found, err := w.found(t.Context()); err != nil || !slices.Equal(found, []runID{run}) {
		t.Errorf("found %v, %v", found, err)
	}
	review := newRunID(w.clock.Add(time.Second)) // without tags, because its change set was not executed
	add(review.stack(), "REVIEW_IN_PROGRESS", nil)
	if found, err := w.found(t.Context()); err != nil || !slices.Equal(found, []runID{run, review}) {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestPlan_runsOfOthers_areRemovedAfterTheirLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, young := newRunID(w.clock.Add(-runLimit-time.Second)), newRunID(w.clock.Add(-runLimit+time.Second))
	for _, run := range []runID{old, young} {
		w.fakeAccount.buckets[bucketPrefix(number, region)+string(run)] = nil
	}
	p, err := w.plan(t.Context(), newRunID(w.clock))
	if err != nil || !slices.Equal(p.leftovers, []runID{old}) || !slices.Equal(p.young, []runID{young}) {
		t.Errorf("got %+v, %v", p, err)
	}
	text := p.text(w.runner)
	for _, want := range []string{
		"account 123456789012, region eu-west-1", "9 Lambda::Function", "less than $0.50", "less than 25 minutes",
		"first removes run " + string(old), "does not change run " + string(young),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

func TestRunID_names_fitLimits(t *testing.T) {
	t.Parallel()
	for _, now := range []time.Time{startOfTest, time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)} {
		run := newRunID(now)
		if parsed, err := parseRunID(string(run)); err != nil || !parsed.startedAt().Equal(now) {
			t.Errorf("%s: started at %v, %v", run, parsed.startedAt(), err)
		}
		if hub := run.hub(); len(hub) > 20 || run.stack() != "perdure-"+hub {
			t.Errorf("hub %s, stack %s", hub, run.stack())
		}
		if bucket := bucketPrefix(number, "ap-southeast-2") + string(run); len(bucket) > 63 {
			t.Errorf("bucket %s", bucket)
		}
	}
	for _, text := range []string{"", "orders", "../../etc/passwd"} {
		if _, err := parseRunID(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
