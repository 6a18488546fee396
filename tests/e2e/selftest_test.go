package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/perdure/perdure/tests/localcloud"
)

// selfTestCloud is an empty local AWS for perdure selftest.
type selfTestCloud struct {
	*localcloud.Cloud

	endpoint string // of the commands
	before   []string
}

func newSelfTestCloud(t *testing.T) *selfTestCloud {
	t.Helper()
	c, err := localcloud.Start(t.Context(), "cloud")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &selfTestCloud{Cloud: c, endpoint: c.Env["AWS_ENDPOINT_URL"]}
	s.before = s.resources(t)
	return s
}

// onLocalStackAlready returns the running LocalStack, which has the hub of the other tests. LocalStack takes a core for
// itself, and half a minute to start.
func onLocalStackAlready(t *testing.T) *selfTestCloud {
	t.Helper()
	s := &selfTestCloud{Cloud: hub.cloud.Cloud, endpoint: hub.cloud.Env["AWS_ENDPOINT_URL"]}
	s.before = s.resources(t)
	return s
}

// resources returns the resources of the cloud.
func (s *selfTestCloud) resources(t *testing.T) []string {
	t.Helper()
	python := filepath.Join("..", "..", "localstack", ".venv", "bin", "python")
	cmd := exec.CommandContext(t.Context(), python, "testdata/inventory.py", s.Env["AWS_ENDPOINT_URL"])
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inventory: %v\n%s", err, complaints.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// left returns the resources that commands have created.
func (s *selfTestCloud) left(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(s.resources(t), func(r string) bool { return slices.Contains(s.before, r) })
}

// test returns a short self-test with the functions of this machine.
func (s *selfTestCloud) test(ctx context.Context, args ...string) *exec.Cmd {
	return s.complete(ctx, append([]string{"--short"}, args...)...)
}

// complete returns a complete self-test with the functions of this machine.
func (s *selfTestCloud) complete(ctx context.Context, args ...string) *exec.Cmd {
	return s.command(ctx, append([]string{"--yes", "--architecture", architecture()}, args...)...)
}

// command returns perdure selftest.
func (s *selfTestCloud) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, hub.perdure, append([]string{"selftest"}, args...)...)
	for name, value := range s.Env {
		cmd.Env = append(cmd.Environ(), name+"="+value)
	}
	cmd.Env = append(cmd.Environ(), "AWS_ENDPOINT_URL="+s.endpoint)
	return cmd
}

// remove removes a run with the command. Then nothing may be left.
func (s *selfTestCloud) remove(t *testing.T, run string) {
	t.Helper()
	if out, err := s.command(t.Context(), "--remove", run).CombinedOutput(); err != nil {
		t.Errorf("remove run %s: %v\n%s", run, err, out)
	}
	if left := s.left(t); len(left) > 0 {
		t.Errorf("after the removal, %v are left", left)
	}
}

var plannedRun = regexp.MustCompile(`stack   perdure-selftest-(\w+) with`)

// runOf returns the ID of a run from its standard error.
func runOf(t *testing.T, stderr string) string {
	t.Helper()
	found := plannedRun.FindStringSubmatch(stderr)
	if found == nil {
		t.Fatalf("no run in:\n%s", stderr)
	}
	return found[1]
}

// selfTestReport is the --json output of perdure selftest.
type selfTestReport struct {
	Scenarios []struct {
		Name  string `json:"name"`
		Error string `json:"error"`
	} `json:"scenarios"`
	Latencies []struct {
		Name string  `json:"name"`
		P50  float64 `json:"p50"`
		Max  float64 `json:"max"`
	} `json:"latencies"`
	Cost []struct {
		Estimated float64 `json:"estimated"`
		Forecast  float64 `json:"forecast"`
	} `json:"cost"`
	Checks []struct {
		Check   string `json:"check"`
		Verdict string `json:"verdict"`
		Detail  string `json:"detail"`
	} `json:"checks"`
	Remaining []string `json:"remaining"`
}

// onMinistack has the checks that find differences between ministack and AWS.
var onMinistack = map[string]string{
	"api-cors":         "a preflight request gets status 403", // perdure's guard of the local cloud rejects requests of other origins
	"doctor":           "recursive loop detection is enabled",
	"iam-leading-keys": `a put of ["other"] is allowed`,
	"iam-operator":     "the role may update the mapping of another function",
	"lambda-freeze":    "ticks between two invocations",
	"lambda-size":      "a response of 6600000 bytes in JSON is accepted",
	"mapping-partial":  `message "reports an unknown ID" arrived 1 of 2 times`,
	"schedule-list":    "pages of 3 schedules omit 6 of 9",
	"sqs-batch":        "2 entries accepted",
	"sqs-delay":        "901 s are accepted",
	"sqs-lock-limit":   "a lock of more than 12 hours is accepted",
	"sqs-receipt":      "an expired receipt deletes the message",
	// only in the complete self-test
	"lambda-log-level":     "an invocation that exceeds its timeout is not in the log",
	"cloudwatch-alarms":    ":INSUFFICIENT_DATA",
	"cloudwatch-filter":    "a line is not counted after 5m0s",
	"cloudwatch-metrics":   "the metric has 0 of 100 values",
	"lambda-alias":         "version 2 receives no messages",
	"schedule-dead-letter": "no dead letter of an undeliverable schedule",
	"sqs-fairness":         "other tenants wait behind a backlog",
	"sqs-purge":            "a second purge is accepted at once",
}

// The self-test runs, is interrupted, is killed and loses its credentials, in one empty cloud. Nothing is left.
func TestSelfTest(t *testing.T) {
	s := newSelfTestCloud(t)
	t.Run("short_passesAndLeavesNothing", s.passes)
	t.Run("interrupted_leavesNothing", s.interrupted)
	t.Run("killed_isRemovedByID", s.killed)
	t.Run("credentialsExpire_isRemovedByID", s.expires)
}

func (s *selfTestCloud) passes(t *testing.T) {
	s.wantReport(t, s.test(t.Context(), "--json"), selfTestWant{24, 54, onMinistack})
}

// The complete self-test takes several minutes, so only make test-selftest runs it.
func TestSelfTestComplete_ministack_passesAndLeavesNothing(t *testing.T) {
	s := newSelfTestCloud(t)
	s.wantReport(t, s.complete(t.Context(), "--json"), selfTestWant{72, 73, onMinistack})
}

// The short self-test passes on LocalStack, with a function URL and without schedules.
func TestSelfTestLocalStack_short_passesAndLeavesNothing(t *testing.T) {
	if !onLocalStack {
		t.Skip("make test-localstack-order runs this test")
	}
	s := onLocalStackAlready(t)
	s.wantReport(t, s.test(t.Context(), "--json", "--parameter", "APIKind=function-url", "--parameter", "Timers=hops"),
		selfTestWant{24, 54, onLocalStackDiffers})
}

// onLocalStackDiffers has the checks that find differences between LocalStack and AWS.
var onLocalStackDiffers = map[string]string{
	"api-caller":        `the caller "client" of the API`,
	"api-paths":         "was started with two values of Idempotency-Key",
	"doctor":            "recursive loop detection is enabled",
	"dynamodb-capacity": "8 write units, want 12",
	"iam-leading-keys":  `a put of ["other"] is allowed`,
	"iam-operator":      "the role may update the mapping of another function",
	"lambda-freeze":     "ticks between two invocations",
	"lambda-size":       "a response of 6600000 bytes in JSON is accepted",
	"url-paths":         "the path /v1/a%2Fb arrives as /v1/a/b",
	"url-permissions":   "a role without lambda:InvokeFunction may call the function URL",
	"sqs-batch":         "2 entries accepted",
	"sqs-delay":         "901 s are accepted",
	"sqs-errors":        "an entry with a character failed with InvalidMessageContents (fault of the sender: false)",
	"sqs-lock-limit":    "a lock of more than 12 hours is accepted",
}

// selfTestWant has the numbers of results in a report, and the checks that differ, with a part of their details.
type selfTestWant struct {
	scenarios, checks int
	differs           map[string]string
}

// wantReport runs a self-test, checks its report, and that nothing is left.
func (s *selfTestCloud) wantReport(t *testing.T, cmd *exec.Cmd, want selfTestWant) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	t.Logf("%s", stderr.String())
	failed, _ := errors.AsType[*exec.ExitError](err)
	if failed == nil || failed.ExitCode() != 2 { // the emulator differs from AWS
		t.Fatalf("got %v\n%s", err, out)
	}
	var report selfTestReport
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("report %s: %v", out, err)
	}
	report.check(t, want.differs)
	if len(report.Scenarios) != want.scenarios || len(report.Latencies) != 5 || len(report.Cost) != 2 ||
		len(report.Checks) != want.checks {
		t.Errorf("got %d scenarios, %d latencies, %d costs, %d checks", len(report.Scenarios), len(report.Latencies),
			len(report.Cost), len(report.Checks))
	}
	if left := s.left(t); len(left) > 0 || len(report.Remaining) > 0 {
		t.Errorf("%v are left, the report has %v", left, report.Remaining)
	}
}

// check checks the results of a report.
func (r *selfTestReport) check(t *testing.T, different map[string]string) {
	t.Helper()
	for _, scenario := range r.Scenarios {
		if scenario.Error != "" {
			t.Errorf("scenario %s: %s", scenario.Name, scenario.Error)
		}
	}
	for _, c := range r.Checks {
		want, differs := different[c.Check]
		if c.Check == "lambda-freeze" && c.Verdict == "not shown" { // each invocation ran in another process
			continue
		}
		if differs != (c.Verdict == "differs") || !strings.Contains(c.Detail, want) {
			t.Errorf("check %s: %s, %s", c.Check, c.Verdict, c.Detail)
		}
	}
	for _, l := range r.Latencies {
		if l.P50 <= 0 || l.P50 > 5000 || l.Max < l.P50 { // LocalStack needs a second or two
			t.Errorf("latency %+v", l)
		}
	}
	for _, c := range r.Cost {
		if c.Estimated < c.Forecast*3/4 || c.Estimated > c.Forecast*5/4 {
			t.Errorf("cost %+v", c)
		}
	}
}

// An interruption during the test removes everything.
func (s *selfTestCloud) interrupted(t *testing.T) {
	text := interrupt(t, s.test(t.Context()), "passed")
	if !strings.Contains(text, "perdure: interrupted; everything was removed") {
		t.Errorf("got:\n%s", text)
	}
	// ministack creates the log group of a deleted function again if it still runs. On AWS, the role does not allow it.
	left := slices.DeleteFunc(s.left(t), func(r string) bool { return strings.HasPrefix(r, "logs ") })
	if len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	s.before = s.resources(t)
}

// A killed run leaves resources, which another run does not change before the time limit of the killed one.
func (s *selfTestCloud) killed(t *testing.T) {
	stderr := signalAt(t, s.test(t.Context()), "CREATE_COMPLETE", syscall.SIGKILL)
	run := runOf(t, stderr)
	if left := s.left(t); !slices.Contains(left, "cloudformation describe_stacks perdure-selftest-"+run) {
		t.Errorf("the killed run leaves %v", left)
	}
	cmd := s.test(t.Context(), "--yes=false") // reads no answer
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "It does not change run "+run) ||
		!strings.Contains(string(text), "not confirmed, nothing was created") {
		t.Errorf("another run: %v\n%s", err, text)
	}
	s.remove(t, run)
}

// Credentials expire during the creation. The run reports the resources, and renewed credentials remove them.
func (s *selfTestCloud) expires(t *testing.T) {
	proxy := newExpiringProxy(t, s.endpoint)
	s.endpoint = proxy.URL
	cmd := s.test(t.Context())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	failed, _ := errors.AsType[*exec.ExitError](err)
	text := stderr.String()
	run := runOf(t, text)
	if failed == nil || failed.ExitCode() != 3 || !strings.Contains(text, "renew the AWS credentials") ||
		!strings.HasSuffix(strings.TrimSpace(text), "remove them with perdure selftest --remove "+run) {
		t.Errorf("got %v\n%s", err, text)
	}
	if left := s.left(t); len(left) == 0 {
		t.Error("nothing is left: the credentials did not expire during the creation")
	}
	proxy.renewed.Store(true)
	s.remove(t, run)
}

// expiringProxy forwards requests until a change set is executed. Then credentials are expired until they are renewed.
// It throttles every fifth request to CloudFormation.
type expiringProxy struct {
	URL string

	expired, renewed atomic.Bool
	requests         atomic.Int64
}

func newExpiringProxy(t *testing.T, endpoint string) *expiringProxy {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &expiringProxy{}
	forward := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		cloudFormation := strings.Contains(r.Header.Get("Authorization"), "/cloudformation/")
		switch {
		case p.expired.Load() && !p.renewed.Load():
			refuse(w, http.StatusForbidden, "ExpiredToken")
		case cloudFormation && p.requests.Add(1)%5 == 0:
			refuse(w, http.StatusBadRequest, "Throttling")
		default:
			forward.ServeHTTP(w, r)
			if bytes.Contains(body, []byte("Action=ExecuteChangeSet")) {
				p.expired.Store(true)
			}
		}
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// refuse sends an error response of CloudFormation.
func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<ErrorResponse><Error><Code>"+code+"</Code><Message>test</Message></Error></ErrorResponse>")
}
