package lambdahandler

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
)

const (
	get, post, remove = http.MethodGet, http.MethodPost, http.MethodDelete

	startHello = "/v1/orchestrations/hello"
	waiting    = "/v1/instances/waiting"
)

func x(n int) string { return strings.Repeat("x", n) }

func inPath(id string) string { return "~" + base64.RawURLEncoding.EncodeToString([]byte(id)) }

// paths contains the paths of the API with the ID of a running instance, and invalid paths.
var paths = []string{
	startHello, "/v1/instances", waiting, waiting + "/result", waiting + "/executions", waiting + "/history",
	waiting + "/cancellations", waiting + "/events/e", waiting + "/cancel",
	waiting + "/terminate", waiting + "/activities/2/cancel", "/v1/jobs", "/v1/jobs/missing", "/v1/jobs/missing/cancel",
	"/v1/openapi.json", "/v1/healthz", "/v1", "/", "/v1/instances/",
	"/v1//instances", "/v1/../v1/instances", "/v2/instances", "/V1/instances", "/v1/instances/waiting/",
	"/v1/instances/waiting/nothing", "/v1/work-items/renew", "/.env", "/v1/instances/%2e%2e/jobs",
}

// pathsWithBody contains the paths of operations with a request body.
var pathsWithBody = []string{
	startHello, waiting + "/events/e", waiting + "/cancel", "/v1/instances/missing/terminate",
	waiting + "/activities/2/cancel", "/v1/jobs", "/v1/work-items/renew",
}

// methodRequests returns requests for every path with supported and unsupported methods.
func methodRequests() (all []apiRequest) {
	for _, path := range paths {
		for _, method := range []string{
			get, http.MethodHead, post, http.MethodPut, http.MethodPatch, remove, http.MethodOptions, http.MethodTrace,
			"FROB", "get", "PROPFIND",
		} {
			if method == remove && path == waiting || method == post && strings.HasPrefix(path, waiting+"/") {
				path = strings.Replace(path, "waiting", "missing", 1) // the other requests require the instance
			}
			all = append(all, apiRequest{method: method, target: path})
		}
	}
	return all
}

// bodies returns invalid and unusual bodies.
func bodies() []string {
	deep := func(open, shut string, n int) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	list := []string{
		"{", "}", "[", "]", "[]", "null", "true", "0", `""`, `"`, "{}{}", "{} x", "{},", "\x00", "\xff\xfe",
		"\xef\xbb\xbf{}", " ", "\n", "//", "{'a':1}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`,
		`{"":1}`, `{"\u0000":1}`, `{"\ud800":1}`, "{\"\xff\":1}", `{"input":1e99999}`, `{"input":-0}`, `{"input":NaN}`,
		`{"input":0x10}`, `{"input":01}`, `{"__proto__":1}`, `{"input":` + deep("[", "]", 9_000) + `}`,
		`{"input":` + deep(`{"a":`, `}`, 11_000) + `}`, deep("[", "]", 50_000), strings.Repeat("[", 100_000),
		`{"input":"` + x(300_000) + `"}`, `{"` + x(200_000) + `":1}`, strings.Repeat(" ", 262_145),
		strings.Repeat(`{"a":`, 40_000),
		`<a/>`, `a=b&c=d`, "--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--", "\x1f\x8b\x08\x00",
		`{"input":` + strings.Repeat("9", 100_000) + `}`, `{"tags":` + strings.Repeat("[", 5) + `}`,
		`{"message":` + strings.Repeat("1", 50_000) + `}`, `{"message":"\u0000"}`, `{"message":"` + x(1025) + `"}`,
		`{"message":[]}`, `{"message":{}}`, `{"message":"a","message":"b"}`, `{"Message":"a"}`, `{"message":"\ud800"}`,
	}
	return list
}

func bodyRequests() (all []apiRequest) {
	for _, path := range pathsWithBody {
		for _, body := range bodies() {
			all = append(all, apiRequest{method: post, target: path, body: body})
		}
	}
	return all
}

// startRequests returns starts with an invalid or unusual value for each field.
func startRequests() (all []apiRequest) {
	add := func(format string, args ...any) {
		all = append(all, apiRequest{method: post, target: startHello, body: fmt.Sprintf(format, args...)})
	}
	for _, v := range []string{
		"1", "true", "[]", "{}", `["a"]`, `{"a":"b"}`, "1.5", "-1", "1e400", `"\u0000"`, `"\u0007"`,
		`"` + x(5000) + `"`, `"` + strings.Repeat("ü", 600) + `"`, `""`, `"\ud83d"`, `" "`, `"\\"`, `"~"`, `".."`,
	} {
		for _, field := range []string{"instanceId", "version", "delay", "tags", "input"} {
			add(`{%q:%s}`, field, v)
		}
	}
	for _, delay := range []string{
		"-1s", "1", "1y", "9999999h", "1e3s", "NaN", "Inf", "0x1s", "87672h1ns", "9223372036854775808ns", "-0s", "١s",
		"1s ", " 1s", "1s1", "..s", "+1s", "1us", "1\u00b5s",
	} {
		add(`{"delay":%q}`, delay)
	}
	tags := func(n int) string {
		var b []string
		for i := range n {
			b = append(b, fmt.Sprintf(`"k%d":"v"`, i))
		}
		return strings.Join(b, ",")
	}
	for _, t := range []string{
		`{"":"v"}`, `{"k":1}`, `{"k":null}`, `{"k":[]}`, `{"k":"v","k":"w"}`, `{"\u0000":"v"}`, `{"k":"\u0001"}`,
		`{"` + x(65) + `":"v"}`, `{"k":"` + x(257) + `"}`, "{" + tags(16) + "}", "{" + tags(17) + "}",
		"{" + tags(5000) + "}", `[["k","v"]]`, `"k=v"`,
	} {
		add(`{"tags":%s}`, t)
	}
	for _, field := range []string{
		"instanceID", "InstanceId", "name", "startId", "requestedBy", "parent", "executionId", "carriedEvents", "ref",
		"sha256", "inline", "tags.a", "input ", "", "constructor", "$where", "requestContext",
	} {
		add(`{%q:"x"}`, field)
	}
	for _, input := range []string{
		`{"ref":"x#a/0/1","sha256":"0","bytes":1}`, `{"inline":{"ref":"x"}}`, `{"ref":{}}`, `{"sha256":null}`,
		`{"bytes":-1}`, `"` + strings.Repeat(`\u0000`, 30_000) + `"`, `"` + strings.Repeat("<", 200_000) + `"`,
		`"\uD83D\uDE00"`,
	} {
		add(`{"input":%s}`, input)
	}
	return all
}

// ids returns invalid and unusual IDs in paths.
func ids() []string {
	return []string{
		"~", "~~", "~a*", "~YQ==", "~YR", "~YQ%3D%3D", "~YQ%0A", inPath(""), inPath("\x00"), inPath("\xff\xfe"),
		inPath("a/b"), inPath(x(1025)), inPath("\u0085"), inPath("~"), inPath("\n"), inPath(strings.Repeat("😀", 256)),
		"%00", "%0a", "%0D%0A", "%7f",
		"%C2%85", "%ff", "%c0%af", "%2F", "%2f..%2f", "%3F", "%23", "%25", "%2500", "%252F", "%2e", "%2E%2e", "...",
		"a%20b", "a+b", "%20", ";", "a;b=c", "@", ":", "%7B%7D", "%3Cscript%3E", "'%20OR%20'1'='1", "$%7Bjndi:ldap%7D",
		"%F0%9F%98%80",
		"%E2%80%AE", x(1024), x(1025), x(9000), "0", "-1", "null", "undefined", "i%23waiting", "hub", "waiting%20",
		"WAITING", "%61", "a%2Fb%2Fresult",
	}
}

func idRequests() (all []apiRequest) {
	for _, id := range ids() {
		for _, r := range []apiRequest{
			{method: get, target: "/v1/instances/" + id},
			{method: get, target: "/v1/instances/" + id + "/history"},
			{method: get, target: "/v1/instances/" + id + "/executions"},
			{method: remove, target: "/v1/instances/" + id + "?force=true"},
			{method: post, target: "/v1/instances/" + id + "/events/e", body: "1"},
			{method: post, target: waiting + "/events/" + id, body: "1"},
			{method: post, target: "/v1/orchestrations/" + id, body: "{}"},
			{method: post, target: waiting + "/activities/" + id + "/cancel"},
			{method: get, target: "/v1/jobs/" + id},
		} {
			if r.method == remove && (id == "waiting" || id == "%61") {
				continue
			}
			all = append(all, r)
		}
	}
	return all
}

// cursors returns cursors that no list has returned: raw, encoded, and with content that DynamoDB would reject.
func cursors() []string {
	text := base64.RawURLEncoding.EncodeToString
	all := []string{
		"\x00", "\n", "\r", "\x7f", "\u0085", "\xff", " ", "+1", "-1", "0", "01", "1", "5", "x", x(20_000), "null",
		"=", "===", "e30", "e30=", "e30\n", "W10", "MQ", "01KA0000000000000000000000",
	}
	// These cursors have the query of a list below, so only the position is invalid.
	for _, query := range []string{digestOf(""), digestOf("Blocked")} {
		for _, place := range []string{
			`"\u0000"`, `"\n"`, `"\u0085"`, `""`, `" "`, `"0"`, `"0000-00-00T00:00:00.000Z"`, `"~"`, `"~~"`, `"9999"`,
			`1`, `null`, `[]`, `{}`, `"2026-01-01T00:00:00.000Z"`, `"2026-01-01T00:00:00.000Z#zzzzzzzz"`,
			`"` + x(1024) + `"`, `"` + x(1025) + `"`, `"\ud800"`,
		} {
			for _, key := range []string{
				"", `,"k":"i#a"`, `,"k":"\u0000"`, `,"k":"i#"`, `,"k":"x#a"`, `,"k":"i#` + x(1025) + `"`, `,"k":1`,
			} {
				all = append(all, text([]byte(`{"b":`+place+key+`,"q":"`+query+`"}`)))
			}
		}
	}
	return all
}

func cursorRequests() (all []apiRequest) {
	for _, c := range cursors() {
		for _, target := range []string{
			"/v1/instances?", "/v1/instances?status=Blocked&", waiting + "/executions?", waiting + "/cancellations?",
		} {
			if len(c) > 60 && strings.Contains(target, waiting) {
				continue // these lists have no base64 cursors
			}
			all = append(all, apiRequest{method: get, target: target + "cursor=" + url.QueryEscape(c)})
		}
	}
	return all
}

func queryRequests() (all []apiRequest) {
	values := map[string][]string{
		"limit": {
			"0", "-1", "1001", "99999999999999999999", "1.5", "1e2", "0x10", "", "%00", "١", "NaN", "+1", "1%20",
			"null",
		},
		"status": {"running", "Nothing", "%00", "%ff", x(5000), "Running,Failed", "*", ""},
		"name":   {"%00", "%ff", x(257), "%0a", "", "*", "%25"}, "startedAfter": {
			"yesterday", "0", "2026-01-01", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
			"0000-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00%2B99:99", "%00", "1e400",
			"2026-01-01T24:00:00Z",
		},
		"startedBefore": {"today", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "%00"}, "tag": {
			"", "=", "a", "a=%00", "a=b&tag=a=c", "a=b&tag=c=d", "%ff=1", x(300) + "=1",
		},
		"version": {"%00", x(65), ""}, "parent": {"%00", x(1025), "%22", "%ff", "..", ""},
		"after": {"-1", "1.5", "9223372036854775807", "9223372036854775808", "%00", "x", ""}, "execution": {
			"%00", x(65), x(64), "..", "%2F", "missing", "%ff", "01KA0000000000000000000000",
		},
		"wait": {
			"-1s", "x", "1", "1e9h", "%00", "", "5s", "1ns", "NaN",
		},
		"force": {
			"1", "yes", "TRUE", "", "%00", "true%20",
		},
		"pending": {
			"1", "no", "%00", "",
		},
		"nonsense": {
			"1", "%00", "",
		},
		"%00": {"1"}, "%zz": {"1"}, x(3000): {"1"}, "a;b": {"1"}, "": {"", "1"}, "limit[]": {"1"}, "%6cimit": {
			"0", "5",
		},
	}
	for _, path := range []string{
		"/v1/instances", waiting, waiting + "/result", waiting + "/executions", waiting + "/history",
		waiting + "/cancellations", "/v1/jobs",
	} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			for _, v := range values[name] {
				all = append(all, apiRequest{method: get, target: path + "?" + name + "=" + v})
			}
		}
		all = append(
			all, apiRequest{method: get, target: path + "?limit=1&limit=2"}, apiRequest{
				method: get, target: path + "?" + strings.Repeat("a=1&", 2000),
			}, apiRequest{
				method: get, target: path + "?limit",
			}, apiRequest{method: get, target: path + "?&&&"}, apiRequest{method: get, target: path + "??"},
		)
	}
	return all
}

func headerRequests() (all []apiRequest) {
	for _, path := range pathsWithBody {
		for _, header := range [][]string{
			{"Content-Type", ""},
			{"Content-Type", "text/plain"},
			{"Content-Type", "application/json; charset=latin1"},
			{"Content-Type", ";;;"},
			{"Content-Type", "application/json;"},
			{"Content-Type", x(5000)},
			{"Content-Type", "application/xml"},
			{"Content-Type", "multipart/form-data; boundary=x"},
			{"Content-Type", "application/json, application/json"},
			{"Content-Type", "*/*"},
			{"Content-Type", "application/problem+json"},
			{"Content-Encoding", "gzip"},
			{"Content-Encoding", "br, gzip"},
			{"Idempotency-Key", ""},
			{"Idempotency-Key", x(257)},
			{"Idempotency-Key", "a\tb"},
			{"Idempotency-Key", "ü"},
			{"Accept", "text/html"},
			{"Accept-Encoding", "identity;q=0"},
			{"X-Forwarded-For", "127.0.0.1"},
			{"X-Amzn-Request-Context", `{"authorizer":{"iam":{"userArn":"arn:aws:iam::1:root"}}}`},
			{"Authorization", "Basic " + x(4000)},
			{"Cookie", x(8000)},
			{"X-HTTP-Method-Override", "DELETE"},
			{"Range", "bytes=0-"},
			{"If-Match", "*"},
			{"Expect", "100-continue"},
			{"Upgrade", "websocket"},
			{"Transfer-Coding", "x"},
			{"Host2", "evil"},
			{"Origin", "null"},
			{"X", strings.Repeat("a", 20_000)},
		} {
			all = append(all, apiRequest{method: post, target: path, body: `{}`, header: header})
		}
	}
	return all
}

// filterRequests returns requests for bulk operations that must not start.
func filterRequests() (all []apiRequest) {
	for _, body := range []string{
		`{}`, `{"operation":"purge"}`, `{"operation":"drop","all":true}`, `{"operation":1}`,
		`{"operation":"purge","all":"yes"}`, `{"operation":"purge","all":true,"filter":{"name":"a"}}`,
		`{"operation":"purge","filter":{}}`, `{"operation":"purge","filter":[]}`,
		`{"operation":"purge","filter":null}`, `{"operation":"purge","filter":"x"}`,
		`{"operation":"purge","filter":{"name":1}}`, `{"operation":"purge","filter":{"statuses":"Completed"}}`,
		`{"operation":"purge","filter":{"statuses":["Nothing"]}}`,
		`{"operation":"purge","filter":{"statuses":["Running"]}}`, `{"operation":"purge","filter":{"tags":{"":"v"}}}`,
		`{"operation":"purge","filter":{"tags":["a"]}}`, `{"operation":"purge","filter":{"startedAfter":"x"}}`,
		`{"operation":"purge","filter":{"startedAfter":1}}`,
		`{"operation":"purge","filter":{"startedAfter":"9999-12-31T23:59:59Z"}}`,
		`{"operation":"purge","filter":{"startedBefore":"0000-01-01T00:00:00+23:59"}}`,
		`{"operation":"purge","filter":{"updatedBefore":"10000-01-01T00:00:00Z"}}`,
		`{"operation":"purge","filter":{"name":"a"},"message":"m"}`,
		`{"operation":"cancel","force":true,"filter":{"name":"a"}}`,
		`{"operation":"cancel","filter":{"name":"` + x(257) + `"}}`,
		`{"operation":"cancel","filter":{"name":"\u0000"}}`,
		`{"operation":"terminate","filter":{"name":"a"},"message":"` + x(1025) + `"}`,
		`{"operation":"cancel","filter":{"name":"a","Name":"b"}}`,
		`{"operation":"cancel","filter":{"name":"a","name":"b"}}`, `{"operation":"cancel","filter":{"a":1}}`,
		`{"operation":"cancel","dryRun":"x","all":true}`,
		`{"operation":"purge","filter":{"startedBefore":"2026-01-01T00:00:00Z"},"dryRun":true}`,
		`{"operation":"purge","dryRun":true,"all":true}`,
		`{"operation":"purge","dryRun":true,"filter":{"updatedBefore":"0000-01-01T00:00:00Z"}}`,
		`{"operation":"purge","dryRun":true,"filter":{"startedAfter":"0000-01-01T00:00:00+23:59"}}`,
		`{"operation":"purge","dryRun":true,"filter":{"startedBefore":"9999-12-31T23:59:59-23:59"}}`,
		`{"operation":"purge","filter":{"statuses":[` + strings.Repeat(`"Completed",`,
			5000) + `"Failed"]},"dryRun":true}`,
	} {
		all = append(all, apiRequest{method: post, target: "/v1/jobs", body: body})
	}
	return all
}

// leaseRequests returns renewals without a message or with an invalid one.
func leaseRequests() (all []apiRequest) {
	add := func(seconds, leases string) {
		all = append(all, apiRequest{
			method: post, target: "/v1/work-items/renew",
			body: `{"visibilityTimeout":` + seconds + `,"leases":` + leases + `}`,
		})
	}
	lease := func(token, handle string) string { return `{"token":` + token + `,"receiptHandle":` + handle + `}` }
	for _, seconds := range []string{
		"0", "-1", "43200", "43201", "1.5", "1e1", "1e400", "9223372036854775807", "9223372036854775808", `"60"`,
		"null", "true", "[]", "{}", "NaN", "060",
	} {
		add(seconds, `[`+lease(`"w1.1.x"`, `"r"`)+`]`)
	}
	for _, v := range []string{
		`""`, `"w1"`, `"w1.1."`, `"w1.1.AAAA"`, `"\u0000"`, `"\ud800"`, `"` + x(2049) + `"`, `"` + x(100_000) + `"`,
		`"` + strings.Repeat("w1.1.", 1000) + `"`, `"` + strings.Repeat("😀", 600) + `"`, "1", "null", "[]", "{}",
		"true", `"../../etc/passwd"`, `"<a/>"`, `"%00"`,
	} {
		add("60", `[`+lease(v, `"r"`)+`]`)
		add("60", `[`+lease(`"w1.1.x"`, v)+`]`)
	}
	for _, list := range []string{
		"[]", "null", "{}", "1", `"x"`, "[1]", "[null]", "[[]]", "[{}]", `[{"token":"w1"}]`, `[{"receiptHandle":"r"}]`,
		`[{"token":"w1","receiptHandle":"r","` + x(5000) + `":1}]`, `[{"Token":"w1","receiptHandle":"r"}]`,
		`[{"token":"w1","token":"w2","receiptHandle":"r"}]`, `[{"token":"w1","receiptHandle":"r"},{"":1}]`,
		"[" + strings.Repeat(lease(`"w1.1.x"`, `"r"`)+",", 99) + lease(`"w1.1.x"`, `"r"`) + "]",
		"[" + strings.Repeat(lease(`"w1.1.x"`, `"r"`)+",", 100) + lease(`"w1.1.x"`, `"r"`) + "]",
		"[" + strings.Repeat("1,", 100_000) + "1]", strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
		strings.Repeat("[", 50_000),
	} {
		add("60", list)
	}
	return all
}

// rawRequests returns requests that are possible only over HTTP: versions, chunks, and almost invalid requests. Package
// net/http itself rejects invalid requests.
func rawRequests() (all []apiRequest) {
	for _, raw := range []string{
		"GET /v1/instances HTTP/1.0\r\n\r\n", "GET /v1/instances HTTP/1.0\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET http://evil.example/v1/instances HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET //evil.example/v1/instances HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"POST " + startHello + " HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
		"POST " + startHello + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
		"POST " + startHello + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2;" +
			x(5000) + "\r\n{}\r\n0\r\n\r\n",
		"POST " + startHello + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("1\r\n \r\n", 2000) + "2\r\n{}\r\n0\r\n\r\n",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: " +
			"y\r\n\r\n",
		"POST " + startHello + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{}",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 9223372036854775807\r\n\r\n{}",
		"GET /v1/instances?a=%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET " + waiting + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
		"GET /v1/instances HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: a\r\nIdempotency-Key: " +
			"b\r\nContent-Length: 2\r\n\r\n{}",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: \xff\r\nContent-Length: 2\r\n\r\n{}",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: \xff\r\nContent-Length: 2\r\n\r\n{}",
		"POST " + startHello +
			" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Type: " +
			"text/plain\r\nContent-Length: 2\r\n\r\n{}",
		"HEAD /v1/instances HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"get /v1/instances HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET /v1/instances/a%5Cb HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET /v1/instances;a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET /v1/instances/ü HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	} {
		method, _, _ := strings.Cut(raw, " ")
		if line, rest, _ := strings.Cut(raw, "\r\n"); method == post && !strings.Contains(raw, "Content-Type") {
			raw = line + "\r\nContent-Type: application/json\r\n" + rest
		}
		all = append(all, apiRequest{method: method, raw: raw})
	}
	return all
}

// repeatedRequests returns repeated requests, and requests for an ended instance.
func repeatedRequests() (all []apiRequest) {
	for range 2 {
		all = append(all,
			apiRequest{method: post, target: startHello, body: `{"instanceId":"twice","input":1}`}, apiRequest{
				method: post, target: startHello, body: `{"input":1}`, header: []string{"Idempotency-Key", "k"},
			},
			apiRequest{
				method: post, target: startHello, body: `{"input":2,"instanceId":"other"}`, header: []string{
					"Idempotency-Key", "k",
				},
			}, apiRequest{method: post, target: "/v1/instances/twice/cancel"}, apiRequest{
				method: post, target: "/v1/instances/twice/terminate", body: `{"message":"m"}`,
			},
			apiRequest{
				method: post, target: "/v1/instances/over/events/e", body: "1",
			}, apiRequest{method: post, target: "/v1/instances/over/cancel"}, apiRequest{
				method: post, target: "/v1/instances/over/terminate",
			}, apiRequest{
				method: post, target: "/v1/instances/over/activities/2/cancel",
			},
			apiRequest{
				method: post, target: waiting + "/activities/" + strconv.Itoa(1<<40) + "/cancel",
			}, apiRequest{method: remove, target: waiting}, apiRequest{
				method: get, target: "/v1/instances/over/result?wait=20s",
			}, apiRequest{method: remove, target: "/v1/instances/over"},
		)
	}
	return all
}

// Through each gateway, every response arrives within ten seconds, and no status is a 5xx. The OpenAPI document
// describes every response, and a rejection is a problem with a code. A function URL responds like HTTP.
func TestAPI_hostileRequests_neverReturn5xx(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := greetings()
		perdure.AddOrchestration(r, "wait", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
		})
		hub, err := simhub.New(simhub.Options{Registry: r})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(hub.Close)
		d := open(t, hub.Provider)
		for id, name := range map[string]string{"waiting": "wait", "over": "hello"} {
			if a := d.byHTTP(&apiRequest{
				method: post, target: "/v1/orchestrations/" + name, body: fmt.Sprintf(
					`{"instanceId":%q,"input":1}`, id,
				),
			}); a.Code != http.StatusAccepted {
				t.Fatalf("got status %d: %s", a.Code, a.Body)
			}
			time.Sleep(time.Second)
		}
		settle(hub)
		requests, seen, codes := 0, map[string]bool{}, map[string]int{}
		for _, kind := range [][]apiRequest{
			methodRequests(), bodyRequests(), startRequests(), idRequests(), cursorRequests(), queryRequests(),
			headerRequests(), filterRequests(), leaseRequests(),
			rawRequests(), repeatedRequests(),
		} {
			for i := range kind {
				q := &kind[i]
				key := q.String() + q.body
				if seen[key] || len(seen)%manyOr(3, 1) > 0 {
					seen[key] = true
					continue
				}
				seen[key] = true
				requests++
				var responses []apiResponse
				responses = append(responses, d.byHTTP(q))
				if q.raw == "" {
					responses = append(responses, d.byLambda(byAPI, q), d.byLambda(byFunctionURL, q))
				}
				d.checkResponses(q, responses)
				for _, a := range responses {
					codes[strconv.Itoa(a.Code)]++
				}
			}
		}
		t.Logf("%d requests, responses %v", requests, codes)
		if requests < 795 {
			t.Errorf("got %d requests, want at least 795", requests)
		}
		settle(hub) // process the started instances and the sent messages
		if a := d.byHTTP(&apiRequest{method: get, target: "/v1/instances?limit=1000"}); a.Code != http.StatusOK {
			t.Errorf("after the requests: got status %d: %s", a.Code, a.Body)
		}
		if _, log, failed := strings.Cut(d.log.String(), "level=ERROR"); failed {
			t.Errorf("got log %.2000s", log)
		}
	})
}

// settle runs the functions of the hub until no work is pending, including redeliveries.
func settle(hub *simhub.Hub) {
	for range 3 {
		for hub.Cloud.Step() {
		}
		time.Sleep(5 * time.Minute)
	}
}

// digestOf returns the digest of a query in the cursors of its list.
func digestOf(status string) string {
	h := sha256.New()
	for _, part := range []string{status, "", "0001-01-01T00:00:00.000Z"} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// checkResponses checks the rules for all responses to a request.
func (d *gateways) checkResponses(q *apiRequest, responses []apiResponse) {
	d.t.Helper()
	for i := range responses {
		a := &responses[i]
		if a.Code >= http.StatusInternalServerError || a.took > 10*time.Second {
			d.t.Errorf("%s by %s: got %d after %v: %.300s", q, a.gateway, a.Code, a.took, a.Body)
			continue
		}
		if wrong := d.document.Wrong(&a.Reply); len(wrong) > 0 {
			d.t.Errorf("%s by %s: got %.600s", q, a.gateway, wrong)
		}
		p := problemOf(a)
		if a.Code >= http.StatusBadRequest && !a.Head && (p.Code == "" || len(p.Field) > 64 || len(p.Detail) > 3000) {
			d.t.Errorf("%s by %s: got status %d with an invalid problem: %.300s", q, a.gateway, a.Code, a.Body)
		}
		if p.Code == "invalid_request" && p.Field == "" {
			d.t.Errorf("%s by %s: got no field in %.300s", q, a.gateway, a.Body)
		}
		first := problemOf(&responses[0])
		if a.gateway == byFunctionURL && responses[0].Code >= http.StatusBadRequest &&
			(p.Code != first.Code || p.Field != first.Field) {
			d.t.Errorf("%s: by HTTP: got %d %v; by %s: got %d %v", q, responses[0].Code, first, a.gateway, a.Code, p)
		}
	}
}
