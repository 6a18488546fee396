package guardtest

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/fakeprovider"
)

const (
	// anyError matches every status from 400.
	anyError = -1
	// responseLimit is longer than any response takes, and shorter than a server's own limits, so that a server that
	// hangs fails the test.
	responseLimit = 10 * time.Second
)

// probe is the header that identifies the requests of a check.
const probe = "Probe"

// API serves the real HTTP API of a hub in memory and records the requests that reach it.
type API struct {
	http.Handler

	reached sync.Map // by the value of probe; a smuggled request has none
}

func (a *API) seen(id string) bool {
	_, seen := a.reached.Load(id)
	return seen
}

// NewAPI returns the API of a hub that has the orchestration "hello" and its instance "a".
func NewAPI(t *testing.T) *API {
	t.Helper()
	p := fakeprovider.New(time.Now, "hello") //nolint:forbidigo // the test's server has real connections
	c := client.New(p)
	if _, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID("a")); err != nil {
		t.Fatal(err)
	}
	api := httpapi.New(c, admin.New(p), httpapi.WithLogger(slog.New(slog.DiscardHandler)))
	a := &API{}
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.reached.Store(r.Header.Get(probe), true)
		api.ServeHTTP(w, r)
	})
	return a
}

// Check sends hostile requests to a listener of the API at a loopback address, and fails the test for each one that is
// accepted. Check then sends requests of programs and of the web UI, and fails the test for each one that is rejected.
func Check(t *testing.T, address string, api *API) {
	t.Helper()
	requests := hostile(address)
	accepted := 0
	for i, r := range requests {
		id := strconv.Itoa(i)
		line, rest, _ := strings.Cut(r.raw, "\r\n")
		statuses, err := send(t.Context(), address, line+"\r\n"+probe+": "+id+"\r\n"+rest)
		ok := err == nil && len(statuses) <= 1 && (r.status != 0 || !api.seen(id))
		for _, status := range statuses {
			ok = ok && status >= http.StatusBadRequest && (r.status <= 0 || status == r.status)
		}
		if !ok {
			accepted++
			t.Errorf("%s: responses %v, %v; reached the API: %v", r.name, statuses, err, api.seen(id))
		}
	}
	if api.seen("") {
		t.Error("the API has received a request that was in the body of another")
	}
	t.Logf("%d hostile requests, %d wrongly accepted", len(requests), accepted)
	for _, r := range friendly(address) {
		statuses, err := send(t.Context(), address, r.raw)
		if err != nil || !slices.Equal(statuses, []int{r.status}) {
			t.Errorf("%s: responses %v, %v, want %d", r.name, statuses, err, r.status)
		}
	}
}

// friendly returns requests that a listener must accept.
func friendly(host string) []request {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		panic(err)
	}
	own := "Host: " + host
	return []request{
		{"a program", compose(list, "1.1", "", own), http.StatusOK},
		{"a program, HTTP/1.0", compose(list, "1.0", "", own), http.StatusOK},
		{"a program, by localhost", compose(list, "1.1", "", "Host: localhost:"+port), http.StatusOK},
		{"a program, by IPv6", compose(list, "1.1", "", "Host: [::1]:"+port), http.StatusOK},
		{"a HEAD", compose("HEAD /v1/instances/a", "1.1", "", own), http.StatusOK},
		{"a typed address", compose(list, "1.1", "", own, "Sec-Fetch-Site: none"), http.StatusOK},
		{"the web UI", compose(list, "1.1", "", own, "Sec-Fetch-Site: same-origin"), http.StatusOK},
		{
			"the web UI, a change",
			compose(cancel, "1.1", "", own, "Sec-Fetch-Site: same-origin", "Origin: http://"+host), http.StatusAccepted,
		},
		{"a change without a body", compose(cancel, "1.1", "", own), http.StatusAccepted},
		{"a change with length 0", compose(cancel, "1.1", "", own, "Content-Length: 0"), http.StatusAccepted},
		{"a start", compose(start, "1.1", `{"instanceId":"one"}`, own, asJSON), http.StatusAccepted},
		{
			"a start with a charset",
			compose(start, "1.1", `{"instanceId":"two"}`, own, asJSON+"; charset=utf-8"), http.StatusAccepted,
		},
		{
			"a chunked start",
			compose(start, "1.1", "", own, asJSON, "Transfer-Encoding: chunked") +
				"8\r\n{\"instan\r\ne\r\nceId\":\"three\"}\r\n0\r\n\r\n", http.StatusAccepted,
		},
		{"the chunked start, read", compose("GET /v1/instances/~dGhyZWU", "1.1", "", own), http.StatusOK},
	}
}

// send sends the text of a request over a new connection, and returns the statuses of the responses until the server
// closes the connection.
func send(ctx context.Context, address, raw string) (statuses []int, err error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err //nolint:wrapcheck // for the message of a test
	}
	defer c.Close()                                                      //nolint:errcheck // the responses are read
	if err := c.SetDeadline(time.Now().Add(responseLimit)); err != nil { //nolint:forbidigo // of a real connection
		return nil, err //nolint:wrapcheck // for the message of a test
	}
	_, _ = io.WriteString(c, raw) // the server may have closed the connection before the end
	method, _, _ := strings.Cut(raw, " ")
	in := bufio.NewReader(c)
	for {
		response, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return statuses, timeout(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close() // the body has been read
		statuses = append(statuses, response.StatusCode)
		if err != nil {
			return statuses, timeout(err)
		}
	}
}

// timeout returns err if the server has neither responded nor closed the connection in time.
func timeout(err error) error {
	if e, ok := err.(net.Error); ok && e.Timeout() { //nolint:errorlint // of the connection itself
		return err
	}
	return nil
}
