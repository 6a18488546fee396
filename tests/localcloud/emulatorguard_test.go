package localcloud_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/tests/localcloud"
)

// otherOrigins returns the headers of requests from pages of other origins to a server at an address.
func otherOrigins(address string) map[string]string {
	_, port, _ := strings.Cut(address, ":")
	return map[string]string{
		"no host":                      "",
		"an empty host":                "Host:\r\n",
		"a rebound name":               "Host: evil.example:" + port + "\r\n",
		"a rebound name, without port": "Host: evil.example\r\n",
		"a name that ends as AWS's":    "Host: evilamazonaws.com\r\n",
		"two hosts":                    "Host: " + address + "\r\nHost: evil.example\r\n",
		"cross-site": "Host: " + address +
			"\r\nSec-Fetch-Site: cross-site\r\nOrigin: https://evil.example\r\n",
		"same-site":        "Host: " + address + "\r\nSec-Fetch-Site: same-site\r\n",
		"another origin":   "Host: " + address + "\r\nOrigin: https://evil.example\r\n",
		"an opaque origin": "Host: " + address + "\r\nOrigin: null\r\n",
	}
}

// statusOf sends a raw request over a new connection and returns the status of the response, or 0 if the server closes
// the connection.
func statusOf(t *testing.T, address, raw string) int {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(c, raw); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() { //nolint:errorlint // not wrapped
			t.Errorf("got no response to %q", raw)
		}
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// A caller of the emulator can invoke the functions with any event, and change their data.
func TestEmulator_pagesOfOtherOrigins_areRejected(t *testing.T) {
	t.Parallel()
	c, err := localcloud.Start(t.Context(), "cloud")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	address := strings.TrimPrefix(c.Env["AWS_ENDPOINT_URL"], "http://")
	lines := []string{
		"GET /_localstack/health", "GET /bucket", "OPTIONS /bucket", "DELETE /bucket",
		"POST /2015-03-31/functions/f/invocations", "POST /?Action=ListQueues",
	}
	rejections := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusMisdirectedRequest}
	tried, accepted := 0, 0
	for name, headers := range otherOrigins(address) {
		for _, line := range lines {
			tried++
			raw := line + " HTTP/1.1\r\nConnection: close\r\n" + headers + "Content-Length: 0\r\n\r\n"
			if status := statusOf(t, address, raw); !slices.Contains(rejections, status) {
				accepted++
				t.Errorf("%s: %s: got status %d", name, line, status)
			}
		}
	}
	t.Logf("%d hostile requests, %d wrongly accepted", tried, accepted)
	own := []string{address, "localhost:1", "b.s3.us-east-1.amazonaws.com", "a.lambda-url.us-east-1.on.aws"}
	for _, host := range own {
		raw := "GET /_localstack/health HTTP/1.1\r\nConnection: close\r\nHost: " + host + "\r\n\r\n"
		if status := statusOf(t, address, raw); status == http.StatusMisdirectedRequest || status == 0 {
			t.Errorf("host %s: got status %d", host, status)
		}
	}
}

// serveRuntime is a program that serves the runtime API of LocalStack's functions without LocalStack, whose modules are
// empty here. It prints its address and then the requests that reach the runtime, and ends with standard input.
const serveRuntime = `
import sys, threading, types
from concurrent.futures import Future
for name, value in {"executor_endpoint": "StatusErrorException", "lambda_models": "FunctionVersion InvocationResult",
                    "runtime_executor": "RuntimeExecutor"}.items():
    module = sys.modules["localstack.services.lambda_.invocation." + name] = types.ModuleType(name)
    for cls in value.split():
        setattr(module, cls, type(cls, (), {}))
import process_executor
class Runtime:
    def next(self):
        print("next", flush=True)
    def settle(self, request_id, body, is_error):
        print("settled", request_id, len(body), flush=True)
        return True
server = process_executor.ThreadingHTTPServer(("127.0.0.1", 0), process_executor.handler(Runtime()))
threading.Thread(target=server.serve_forever, daemon=True).start()
print("127.0.0.1:%d" % server.server_address[1], flush=True)
sys.stdin.read()`

func TestRuntimeAPI_pagesOfOtherOriginsAndBadLengths_areRejected(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer stop()
	p := exec.CommandContext(ctx, "python3", "-c", serveRuntime)
	p.Dir = "../../localstack"
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	address, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	const response = "POST /2018-06-01/runtime/invocation/r-1/response HTTP/1.1\r\n"
	tried := 0
	reject := func(name, raw string, want int) {
		t.Helper()
		tried++
		if status := statusOf(t, address, raw); status != want {
			t.Errorf("%s: got status %d, want %d", name, status, want)
		}
	}
	for name, headers := range otherOrigins(address) {
		want := http.StatusMisdirectedRequest
		if strings.Contains(headers, "Origin") || strings.Contains(headers, "Site") {
			want = http.StatusForbidden
		}
		reject(name, "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\n"+headers+"\r\n", want)
		reject(name, response+headers+"Content-Length: 0\r\n\r\n", want)
	}
	for _, framing := range []string{
		"Content-Length: -1\r\n\r\n", "Content-Length: +1\r\n\r\n1", "Content-Length: x\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n-1\r\n", "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		reject(framing, response+"Host: "+address+"\r\n"+framing, http.StatusBadRequest)
	}
	t.Logf("%d hostile requests", tried)
	raw := response + "Host: " + address + "\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
	if status := statusOf(t, address, raw); status != http.StatusAccepted {
		t.Errorf("response of the function: got status %d", status)
	}
	if reached, err := out.ReadString('\n'); err != nil || reached != "settled r-1 2\n" {
		t.Errorf("result at the runtime: got %q, error %v", reached, err)
	}
	in.Close()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}
