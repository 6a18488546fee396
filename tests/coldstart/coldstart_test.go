package coldstart_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// bounds are the maximum sizes of the stripped binaries for Lambda on arm64, in bytes. Each cold start reads and maps a
// binary.
var bounds = map[string]int64{
	"orchestrator": 14_000_000,
	"worker":       14_000_000,
	"renewer":      14_000_000,
	"api":          14_000_000,
}

func TestBinaries_areSmallerThanTheirLimits(t *testing.T) {
	t.Parallel()
	dir := build(t, "linux", "arm64")
	for name, most := range bounds {
		file, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", name, file.Size())
		if file.Size() > most {
			t.Errorf("%s: got %d bytes, want at most %d; `go tool nm -size` of an unstripped binary lists "+
				"its symbols", name, file.Size(), most)
		}
	}
}

// If a binary for Lambda is started elsewhere, it exits immediately and prints the reason.
func TestLambdaBinary_unsupportedConfiguration_reportsReason(t *testing.T) {
	t.Parallel()
	dir := build(t, runtime.GOOS, runtime.GOARCH)
	for name, tt := range map[string]struct {
		env  []string
		want string
	}{
		"hub with a name": {
			[]string{"PERDURE_HUB=orders"},
			"PERDURE_HUB names a hub that cannot be opened: dynamo: open hub \"orders\": this binary was built for " +
				"Lambda, with the tag perdure_lambda",
		},
		"no credentials": {
			append(slices.Clone(configuration), "AWS_REGION=us-east-1"),
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: this binary was built with the tag perdure_lambda",
		},
		"custom CA": {
			append(slices.Clone(configuration), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=a",
				"AWS_SECRET_ACCESS_KEY=b", "AWS_CA_BUNDLE=/etc/ca.pem"),
			"AWS_CA_BUNDLE is set: this binary was built with the tag perdure_lambda",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "worker"))
			cmd.Env = tt.env
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("got output %q, error %v, want %q", out, err, tt.want)
			}
		})
	}
}

// BenchmarkColdStart measures the time from the start of a process to its first request for an invocation. The
// initialization includes two DynamoDB calls, which get an immediate response.
func BenchmarkColdStart(b *testing.B) {
	dir := build(b, runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"orchestrator", "worker", "renewer", "api"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, start(b, filepath.Join(dir, name)))
			}
			slices.Sort(took)
			b.ReportMetric(ms(took[0]), "min-ms")
			b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
			b.ReportMetric(ms(took[len(took)*9/10]), "p90-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// configuration is the environment of a function as deployed, with addresses that are never called.
var configuration = []string{
	"PERDURE_HUB=orders", "PERDURE_TABLE=orders", "PERDURE_INBOX_URL=http://127.0.0.1/inbox",
	"PERDURE_TIMERS_URL=http://127.0.0.1/timers",
	`PERDURE_WORK_QUEUES={"default":"http://127.0.0.1/work"}`,
	`PERDURE_DEAD_LETTERS={"default":"http://127.0.0.1/dead"}`, "PERDURE_BUILD_ID=1",
	"PERDURE_SCHEDULE_GROUP=orders", "PERDURE_SCHEDULE_ROLE_ARN=arn:aws:iam::123456789012:role/orders",
	"PERDURE_TIMERS_ARN=arn:aws:sqs:us-east-1:123456789012:timers",
	"PERDURE_TIMERS_DEAD_LETTERS_ARN=arn:aws:sqs:us-east-1:123456789012:dead", "PERDURE_QUEUE=default",
}

// start starts a function with a runtime API that has no invocations. It returns the time until the function requests
// one.
func start(tb testing.TB, binary string) time.Duration {
	tb.Helper()
	requested := make(chan time.Time, 1)
	lambda := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			requested <- time.Now()
			<-r.Context().Done()
			return
		}
		if strings.HasSuffix(r.URL.Path, "/init/error") {
			tb.Error("the function reported an initialization error")
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		fmt.Fprint(w, "{}")
	}))
	defer lambda.Close()

	ctx, end := context.WithTimeout(tb.Context(), time.Minute)
	defer end()
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(slices.Clone(configuration), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=a",
		"AWS_SECRET_ACCESS_KEY=b", "AWS_SESSION_TOKEN=c",
		"AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(lambda.URL, "http://"), "AWS_ENDPOINT_URL="+lambda.URL)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	var at time.Time
	select {
	case at = <-requested:
	case <-ctx.Done():
		tb.Fatal("the function requested no work")
	}
	end()
	_ = cmd.Wait() // the context killed it
	return at.Sub(began)
}

// build builds the four functions as for a deployment.
func build(tb testing.TB, system, arch string) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-tags", "lambda.norpc,perdure_lambda", "-trimpath",
		"-buildvcs=false", "-ldflags=-s -w",
		"-o", dir+string(filepath.Separator), "./functions/...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: got %s", err, out)
	}
	return dir
}
