package localcloud

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// ThrottlingTable is a proxy for DynamoDB of a local cloud. It can reject requests with the error of a throttled table.
type ThrottlingTable struct {
	// URL is the endpoint on the loopback interface.
	URL string
	// Refuses makes the proxy reject all requests. Refused is the number of rejected requests.
	Refuses atomic.Bool
	Refused atomic.Int64
}

// NewThrottlingTable starts a proxy, which runs until the test ends.
func NewThrottlingTable(t *testing.T, c *Cloud) *ThrottlingTable {
	t.Helper()
	endpoint, err := url.Parse(c.Env["AWS_ENDPOINT_URL"])
	if err != nil {
		t.Fatal(err)
	}
	d, forward := &ThrottlingTable{}, httputil.NewSingleHostReverseProxy(endpoint)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.Refuses.Load() {
			forward.ServeHTTP(w, r)
			return
		}
		d.Refused.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException",`+
				`"message":"Throughput exceeds the current capacity of your table or index."}`)
	}))
	t.Cleanup(server.Close)
	d.URL = server.URL
	return d
}
