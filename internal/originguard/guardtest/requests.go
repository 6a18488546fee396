// Package guardtest sends hostile requests to a listener of the HTTP API and checks that it rejects them. It acts as a
// web page of another origin, or as a broken client.
package guardtest

import (
	"fmt"
	"net"
	"strings"
)

// request is the text of a request, and the status of its response.
type request struct {
	name, raw string
	// status is 0 if the listener itself must reject the request, so that the API does not receive it.
	status int
}

const (
	list   = "GET /v1/instances"
	cancel = "POST /v1/instances/a/cancel"
	start  = "POST /v1/orchestrations/hello"
	asJSON = "Content-Type: application/json"

	crossSite = "Sec-Fetch-Site: cross-site"
)

// operations are calls of the API, with their bodies.
var operations = []struct{ line, body string }{
	{list, ""},
	{"HEAD /v1/instances/a", ""},
	{"GET /v1/instances/a/result?wait=1s", ""},
	{"OPTIONS /v1/instances", ""},
	{cancel, ""},
	{"DELETE /v1/instances/a", ""},
	{start, "{}"},
	{"PUT /v1/instances/b", `{"orchestration":"hello"}`},
	{"POST /v1/jobs", `{"operation":"purge","all":true}`},
	{"GET /v1/healthz", ""},
	{"GET /v1/openapi.json", ""},
}

// compose returns the text of a request. It omits empty headers.
func compose(line, version, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s HTTP/%s\r\nConnection: close\r\n", line, version)
	if body != "" {
		headers = append(headers, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	for _, header := range headers {
		if header != "" {
			b.WriteString(header + "\r\n")
		}
	}
	return b.String() + "\r\n" + body
}

func typeOf(body string) string {
	if body == "" {
		return ""
	}
	return asJSON
}

// hostile returns the requests that a server with its own Host header must reject.
func hostile(host string) []request {
	var all []request
	own := "Host: " + host
	for _, operation := range operations {
		for name, headers := range foreign(host) {
			raw := compose(operation.line, "1.1", operation.body, append(headers, typeOf(operation.body))...)
			all = append(all, request{name + ": " + operation.line, raw, 0})
		}
		method, path, _ := strings.Cut(operation.line, " ")
		for _, version := range []string{"1.0", "1.1"} {
			all = append(all,
				request{
					"no host, HTTP/" + version + ": " + operation.line,
					compose(operation.line, version, operation.body, typeOf(operation.body)), 0,
				},
				request{
					"absolute target of another host, HTTP/" + version + ": " + operation.line,
					compose(method+" http://evil.example"+path, version, operation.body, own, typeOf(operation.body)),
					0,
				})
		}
	}
	return append(append(all, untyped(host)...), misframed(host)...)
}

// foreign returns the headers of requests from pages of another origin, and of requests with another host name.
func foreign(host string) map[string][]string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		panic(err)
	}
	rebound := "Host: evil.example:" + port
	all := map[string][]string{
		"two hosts":              {"Host: " + host, "Host: evil.example"},
		"cross-site":             {"Host: " + host, crossSite, "Origin: https://evil.example"},
		"cross-site, no origin":  {"Host: " + host, crossSite},
		"cross-site link":        {"Host: " + host, crossSite, "Sec-Fetch-Mode: navigate"},
		"same-site":              {"Host: " + host, "Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:1"},
		"unknown site":           {"Host: " + host, "Sec-Fetch-Site: elsewhere"},
		"another origin":         {"Host: " + host, "Origin: https://evil.example"},
		"opaque origin":          {"Host: " + host, "Origin: null"},
		"another port's origin":  {"Host: " + host, "Origin: http://127.0.0.1:1"},
		"rebound, same origin":   {rebound, "Origin: http://evil.example:" + port, "Sec-Fetch-Site: same-origin"},
		"forwarded host of ours": {rebound, "X-Forwarded-Host: " + host, "Forwarded: host=\"" + host + "\""},
	}
	for _, name := range []string{
		"evil.example", "evil.example:" + port, "127.0.0.1", "127.0.0.1:1", "localhost:1",
		"localhost.evil.example:" + port, "127.0.0.1.evil.example:" + port,
		"evil.example@" + host, host + ".evil.example", host + ":" + port, "0.0.0.0:" + port, "2130706433:" + port,
	} {
		all["host "+name] = []string{"Host: " + name}
	}
	return all
}

// untyped returns requests with bodies that a page may send to another origin without a CORS preflight request.
func untyped(host string) []request {
	const unsupported = 415
	own := "Host: " + host
	var all []request
	for name, header := range map[string]string{
		"no type":                       "",
		"plain text":                    "Content-Type: text/plain",
		"plain text that mentions JSON": "Content-Type: text/plain;application/json",
		"a form":                        "Content-Type: application/x-www-form-urlencoded",
		"parts":                         "Content-Type: multipart/form-data; boundary=x",
	} {
		for _, line := range []string{start, cancel, "POST /v1/jobs", "PUT /v1/instances/b"} {
			all = append(all,
				request{"body of " + name + ": " + line, compose(line, "1.1", "{}", own, header), unsupported},
				request{
					"chunked body of " + name + ": " + line,
					compose(line, "1.1", "", own, header, "Transfer-Encoding: chunked") + "2\r\n{}\r\n0\r\n\r\n",
					unsupported,
				})
		}
	}
	return all
}

// misframed returns requests with an invalid or ambiguous length. A second request follows each one.
func misframed(host string) []request {
	second := compose(cancel, "1.1", "", "Host: "+host)
	var all []request
	for name, headers := range map[string]string{
		"negative length":            "Content-Length: -1",
		"length with a sign":         "Content-Length: +2",
		"length that is no number":   "Content-Length: 2x",
		"length in hexadecimal":      "Content-Length: 0x2",
		"huge length":                "Content-Length: 99999999999999999999",
		"two lengths":                "Content-Length: 2\r\nContent-Length: 200",
		"two lengths as one":         "Content-Length: 2, 200",
		"unknown transfer coding":    "Transfer-Encoding: gzip",
		"two transfer codings":       "Transfer-Encoding: chunked, identity",
		"chunked under another name": "Transfer-Encoding: xchunked",
		"chunk of no size":           "Transfer-Encoding: chunked\r\n" + asJSON + "\r\n\r\nzz",
		"chunk of negative size":     "Transfer-Encoding: chunked\r\n" + asJSON + "\r\n\r\n-2",
		"space before a colon":       "Content-Length : 2",
	} {
		body, coded := "\r\n\r\n{}", strings.Contains(headers, "\r\n\r\n")
		if coded {
			body = "\r\n{}\r\n0\r\n\r\n"
		}
		status := 0
		if coded {
			status = anyError // the API may have begun to read
		}
		raw := start + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + body + second
		all = append(all, request{name, raw, status})
	}
	return all
}
