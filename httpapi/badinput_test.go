package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/httpapi"
)

func x(n int) string { return strings.Repeat("x", n) }

func inPath(id string) string { return "~" + base64.RawURLEncoding.EncodeToString([]byte(id)) }

// The API rejects invalid input with a 4xx problem that names the field. The request changes nothing, and the log does
// not contain its values.
func TestRequest_invalidInput_isRejectedAndNotLogged(t *testing.T) {
	t.Parallel()
	const secret = "sEcReT"
	get, post := http.MethodGet, http.MethodPost
	type want struct {
		status int
		code   string
		field  string
	}
	bad := func(field string) want { return want{http.StatusBadRequest, "invalid_request", field} }
	large := func(field string) want {
		return want{http.StatusRequestEntityTooLarge, "payload_too_large", field}
	}
	notJSON := want{http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type"}
	missing := want{http.StatusNotFound, "instance_not_found", "instanceId"}
	noRoute := want{http.StatusNotFound, "no_such_route", ""}
	slashed := want{http.StatusNotFound, "no_such_route", "path"}
	method := want{http.StatusMethodNotAllowed, "method_not_allowed", ""}
	secretBody := `{"input":"` + secret + `"}`
	for name, tt := range map[string]struct {
		method, target, body string
		header               []string
		want                 want
	}{
		"empty id":               {post, hello, `{"instanceId":""}`, nil, bad("instanceId")},
		"id of 1 KiB and a byte": {post, hello, `{"instanceId":"` + x(1025) + `"}`, nil, bad("instanceId")},
		"id of 1 KiB in 513 ü": {
			post, hello, `{"instanceId":"` + strings.Repeat("ü", 513) + `"}`, nil, bad("instanceId"),
		},
		"id with NUL":          {post, hello, `{"instanceId":"` + secret + `\u0000"}`, nil, bad("instanceId")},
		"id with a C1 control": {post, hello, `{"instanceId":"` + secret + `\u0085"}`, nil, bad("instanceId")},
		"id that is not UTF-8": {post, hello, "{\"instanceId\":\"\xff\"}", nil, bad("body")},
		"empty id in a path":   {get, "/v1/instances/~", "", nil, bad("instanceId")},
		"no id in a path":      {get, "/v1/instances//history", "", nil, slashed},
		"id with / unescaped":  {get, "/v1/instances/a/b", "", nil, slashed},
		"unknown id with /":    {get, "/v1/instances/" + inPath("a/b"), "", nil, missing},
		"unknown id with #":    {get, "/v1/instances/" + inPath("#"), "", nil, missing},
		"long id in a path":    {get, "/v1/instances/" + inPath(x(1025)), "", nil, bad("instanceId")},
		"id not UTF-8 in a path": {
			get, "/v1/instances/" + inPath("\xff") + "/executions", "", nil, bad("instanceId"),
		},
		"id with NUL in a path":    {post, "/v1/instances/%00/events/e", "1", nil, bad("instanceId")},
		"percent-encoded not UTF8": {post, "/v1/instances/%ff/terminate", "", nil, bad("instanceId")},

		"body that is not JSON": {post, hello, secret, nil, bad("body")},
		"body of 0 bytes":       {post, hello, "", nil, bad("body")},
		"body of white space":   {post, hello, " \n", nil, bad("body")},
		"body null":             {post, hello, "null", nil, bad("body")},
		"body that is cut off":  {post, hello, secretBody[:len(secretBody)-2], nil, bad("body")},
		"body over the limit":   {post, hello, `{}` + strings.Repeat(" ", 256<<10-1), nil, large("body")},
		"deep body": {
			post, hello, `{"input":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, nil,
			bad("body"),
		},
		"input over the limit":       {post, hello, `{"input":"` + x(200<<10-1) + `"}`, nil, large("input")},
		"unknown field":              {post, hello, `{"secret":"` + secret + `"}`, nil, bad("secret")},
		"unknown field, after input": {post, hello, `{"input":"` + secret + `","Tags":{}}`, nil, bad("Tags")},
		"field twice":                {post, hello, `{"version":"1.0.0","version":"2"}`, nil, bad("version")},
		"version too long":           {post, hello, `{"version":"` + x(65) + `"}`, nil, bad("version")},
		"version as a number":        {post, hello, `{"version":1}`, nil, bad("version")},
		"tag key too long":           {post, hello, `{"tags":{"` + x(65) + `":"` + secret + `"}}`, nil, bad("tags")},
		"tag key empty":              {post, hello, `{"tags":{"":"` + secret + `"}}`, nil, bad("tags")},
		"tag value too long":         {post, hello, `{"tags":{"k":"` + secret + x(251) + `"}}`, nil, bad("tags")},
		"seventeen tags": {
			post, hello,
			`{"tags":{` +
				strings.Join(
					strings.Split(
						`"a":"",b":"",c":"",d":"",e":"",f":"",g":"",h":"",i":"",j":"",k":"",l":"",m":"",n":"",o":"",p":"",q":""`,
						",",
					),
					`,"`,
				) + `}}`,
			nil, bad("tags"),
		},
		"unknown orchestration": {
			post, "/v1/orchestrations/missing", secretBody, nil,
			want{http.StatusNotFound, "unknown_orchestration", "orchestration"},
		},
		"unknown version": {
			post, hello, `{"version":"9"}`, nil, want{http.StatusNotFound, "unknown_orchestration", "orchestration"},
		},
		"name too long":  {post, "/v1/orchestrations/" + x(257), secretBody, nil, bad("orchestration")},
		"name not UTF-8": {post, "/v1/orchestrations/%ff", secretBody, nil, bad("orchestration")},
		"key too long":   {post, hello, `{}`, []string{"Idempotency-Key", secret + x(251)}, bad("Idempotency-Key")},
		"empty key":      {post, hello, `{}`, []string{"Idempotency-Key", ""}, bad("Idempotency-Key")},
		"two keys": {
			post, hello, `{}`, []string{"Idempotency-Key", secret, "Idempotency-Key", "b"}, bad("Idempotency-Key"),
		},
		"joined keys":   {post, hello, `{}`, []string{"Idempotency-Key", secret + ",b"}, bad("Idempotency-Key")},
		"key not UTF-8": {post, hello, `{}`, []string{"Idempotency-Key", secret + "\xff"}, bad("Idempotency-Key")},

		"negative delay":             {post, hello, `{"delay":"-1ns"}`, nil, bad("delay")},
		"delay of ten years and 1ns": {post, hello, `{"delay":"87672h0m0.000000001s"}`, nil, bad("delay")},
		"delay of 1,000 years":       {post, hello, `{"delay":"8766000h"}`, nil, bad("delay")},
		"delay without a unit":       {post, hello, `{"delay":"90"}`, nil, bad("delay")},
		"delay as a number":          {post, hello, `{"delay":90}`, nil, bad("delay")},
		"empty delay":                {post, hello, `{"delay":""}`, nil, bad("delay")},
		"delay in words":             {post, hello, `{"delay":"` + secret + `"}`, nil, bad("delay")},

		"start of plain text": {post, hello, secretBody, []string{"Content-Type", "text/plain"}, notJSON},
		"start of a form": {
			post, hello, secretBody, []string{"Content-Type", "application/x-www-form-urlencoded"}, notJSON,
		},
		"start in Latin-1": {
			post, hello, secretBody, []string{"Content-Type", "application/json; charset=latin1"}, notJSON,
		},
		"start with an unknown type": {post, hello, secretBody, []string{"Content-Type", secret}, notJSON},
		"event of XML": {
			post, inUse + "/events/e", `<a/>`, []string{"Content-Type", "application/xml"}, notJSON,
		},
		"terminate by a form": {
			post, inUse + "/terminate", `message=x`,
			[]string{"Content-Type", "multipart/form-data; boundary=x"},
			notJSON,
		},

		"event data that is not JSON": {post, inUse + "/events/e", secret, nil, bad("data")},
		"event data over the limit":   {post, inUse + "/events/e", `"` + x(200<<10-1) + `"`, nil, large("data")},
		"event body over the limit": {
			post, inUse + "/events/e", strings.Repeat(" ", 256<<10) + "1", nil, large("body"),
		},
		"event name too long":      {post, inUse + "/events/" + x(257), "1", nil, bad("event")},
		"event name with NUL":      {post, inUse + "/events/" + inPath("a\x00"), "1", nil, bad("event")},
		"event name not base64url": {post, inUse + "/events/~a*", "1", nil, bad("event")},
		"event id too long": {
			post, inUse + "/events/e", "1", []string{"Idempotency-Key", secret + x(251)}, bad("Idempotency-Key"),
		},
		"two event ids in one header": {
			post, inUse + "/events/e", "1", []string{"Idempotency-Key", secret + ", b"}, bad("Idempotency-Key"),
		},
		"event id empty": {
			post, inUse + "/events/e", "1", []string{"Idempotency-Key", ""}, bad("Idempotency-Key"),
		},
		"event id not UTF-8": {
			post, inUse + "/events/e", "1", []string{"Idempotency-Key", secret + "\xff"}, bad("Idempotency-Key"),
		},
		"event id with a tab": {
			post, inUse + "/events/e", "1", []string{"Idempotency-Key", secret + "\tx"}, bad("Idempotency-Key"),
		},
		"event for unknown id": {post, "/v1/instances/missing/events/e", "1", nil, missing},
		"message too long": {
			post, inUse + "/terminate", `{"message":"` + secret + x(1019) + `"}`, nil, bad("message"),
		},
		"message as a number": {post, inUse + "/terminate", `{"message":1}`, nil, bad("message")},
		"unknown field of a termination": {
			post, inUse + "/terminate", `{"because":"` + secret + `"}`, nil, bad("because"),
		},
		"unknown field of a cancel":     {post, cancel, `{"because":"` + secret + `"}`, nil, bad("because")},
		"message of a cancel too long":  {post, cancel, `{"message":"` + secret + x(1019) + `"}`, nil, bad("message")},
		"message of a cancel, a number": {post, cancel, `{"message":1}`, nil, bad("message")},
		"cancel of plain text":          {post, cancel, secret, []string{"Content-Type", "text/plain"}, notJSON},
		"cancel with a query":           {post, cancel + "?message=" + secret, "", nil, bad("message")},

		"activity 0":   {post, inUse + "/activities/0/cancel", "", nil, bad("activityId")},
		"activity -1":  {post, inUse + "/activities/-1/cancel", "", nil, bad("activityId")},
		"activity +2":  {post, inUse + "/activities/+2/cancel", "", nil, bad("activityId")},
		"activity 02":  {post, inUse + "/activities/02/cancel", "", nil, bad("activityId")},
		"activity 2.0": {post, inUse + "/activities/2.0/cancel", "", nil, bad("activityId")},
		"activity in base64url": {
			post, inUse + "/activities/" + inPath("2") + "/cancel", "", nil, bad("activityId"),
		},
		"activity over int64": {
			post, inUse + "/activities/9223372036854775808/cancel", "", nil, bad("activityId"),
		},
		"activity by name": {
			post, inUse + "/activities/" + secret + "/cancel", "", nil, bad("activityId"),
		},
		"activity of a bad instance":      {post, "/v1/instances/~/activities/2/cancel", "", nil, bad("instanceId")},
		"activity of an unknown instance": {post, "/v1/instances/missing/activities/2/cancel", "", nil, missing},
		"activity cancel, bad body":       {post, busy + "/cancel", `[]`, nil, bad("body")},
		"activity cancel, long message": {
			post, busy + "/cancel", `{"message":"` + secret + x(1019) + `"}`, nil, bad("message"),
		},
		"activity cancel, body of another call": {post, busy + "/cancel", `{"activityId":2}`, nil, bad("activityId")},

		"page of 1,001":                {get, "/v1/instances?limit=1001", "", nil, bad("limit")},
		"page over int64":              {get, "/v1/instances?limit=99999999999999999999", "", nil, bad("limit")},
		"history page of 1,001":        {get, inUse + "/history?limit=1001", "", nil, bad("limit")},
		"executions page of 1,001":     {get, inUse + "/executions?limit=1001", "", nil, bad("limit")},
		"executions page of 0":         {get, inUse + "/executions?limit=0", "", nil, bad("limit")},
		"cursor of no list":            {get, "/v1/instances?cursor=" + secret, "", nil, bad("cursor")},
		"executions cursor of no list": {get, inUse + "/executions?cursor=" + secret, "", nil, bad("cursor")},
		"cursor of another instance":   {get, inUse + "/executions?cursor=x3", "", nil, bad("cursor")},
		"huge execution id":            {get, inUse + "/history?execution=" + x(65), "", nil, bad("execution")},
		"execution id with NUL":        {get, inUse + "/history?execution=%00", "", nil, bad("execution")},
		"execution of another": {
			get, inUse + "/history?execution=x3", "", nil,
			want{http.StatusNotFound, "execution_not_found", "execution"},
		},
		"after -1":                    {get, inUse + "/history?after=-1", "", nil, bad("after")},
		"after over int64":            {get, inUse + "/history?after=9223372036854775808", "", nil, bad("after")},
		"cancellations page of 1,001": {get, inUse + "/cancellations?limit=1001", "", nil, bad("limit")},
		"cancellations page of 0":     {get, inUse + "/cancellations?limit=0", "", nil, bad("limit")},
		"cancellations cursor -1":     {get, inUse + "/cancellations?cursor=-1", "", nil, bad("cursor")},
		"cancellations cursor, words": {get, inUse + "/cancellations?cursor=" + secret, "", nil, bad("cursor")},
		"cancellations of another execution": {
			get, inUse + "/cancellations?execution=x3", "", nil,
			want{http.StatusNotFound, "execution_not_found", "execution"},
		},
		"unknown parameter":         {get, inUse + "/executions?secret=" + secret, "", nil, bad("secret")},
		"parameter twice":           {get, inUse + "/executions?limit=1&limit=2", "", nil, bad("limit")},
		"parameter of a post":       {post, hello + "?token=" + secret, secretBody, nil, bad("token")},
		"query that cannot be read": {get, inUse + "?a=" + secret + "%zz", "", nil, bad("query")},

		"unknown route":           {get, "/v1/" + secret, "", nil, noRoute},
		"unknown route of a post": {post, inUse + "/rewind", secretBody, nil, slashed},
		"server-wide OPTIONS":     {http.MethodOptions, "*", "", nil, noRoute},
		"unknown method":          {"FROB", inUse, "", nil, method},
		"method of another call":  {post, inUse, secretBody, nil, method},
		"method in lower case":    {"get", inUse, "", nil, method},
		"OPTIONS":                 {http.MethodOptions, hello, "", nil, method},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newRunningHub(t)
			h.log.Reset()
			a := h.call(t, tt.method, tt.target, tt.body, tt.header...)
			a.wantProblem(tt.want.status, tt.want.code, tt.want.field)
			if log := h.log.String(); strings.Contains(log, secret) || strings.Count(log, "\n") != 1 {
				t.Errorf("logged %s", log)
			}
			// the parent of the instance "one" also has an executionId
			if list := h.call(t, get, "/v1/instances", "").Body.String(); strings.Count(list, `"executionId":`) != 2+
				1 || len(h.Sent()) > 0 {
				t.Errorf("the request had an effect: %s, sent %v", list, h.Sent())
			}
		})
	}
}

func TestRequest_inputAtTheLimits_isAccepted(t *testing.T) {
	t.Parallel()
	post := http.MethodPost
	key := func(n int) []string { return []string{"Idempotency-Key", x(n)} }
	for name, tt := range map[string]struct {
		target, body string
		header       []string
	}{
		"id of 1 KiB":       {hello, `{"instanceId":"` + x(1024) + `"}`, nil},
		"input":             {hello, `{"input":"` + x(200<<10-2) + `"}`, nil},
		"body":              {hello, `{}` + strings.Repeat(" ", 256<<10-2), nil},
		"version":           {hello, `{"version":""}`, nil},
		"tags":              {hello, `{"tags":{"` + x(64) + `":"` + x(256) + `"}}`, nil},
		"key":               {hello, `{}`, key(256)},
		"no delay":          {hello, `{"delay":"0s"}`, nil},
		"delay of 10 years": {hello, `{"delay":"87672h"}`, nil},
		"null for optional fields": {
			hello, `{"instanceId":null,"input":null,"version":null,"delay":null,"tags":null}`, nil,
		},
		"JSON in UTF-8":               {hello, `{}`, []string{"Content-Type", `application/json; charset="UTF-8"`}},
		"JSON of a kind":              {hello, `{}`, []string{"Content-Type", "application/vnd.example+json"}},
		"event data":                  {inUse + "/events/e", `"` + x(200<<10-2) + `"`, key(256)},
		"event name":                  {inUse + "/events/" + x(256), `1`, nil},
		"no data without a JSON type": {inUse + "/events/e", ``, []string{"Content-Type", "text/plain"}},
		"message":                     {inUse + "/terminate", `{"message":"` + x(1024) + `"}`, nil},
		"message of a cancel":         {cancel, `{"message":"` + x(1024) + `"}`, nil},
		"message to activity":         {busy + "/cancel", `{"message":"` + x(1024) + `"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRunningHub(t).call(t, post, tt.target, tt.body, tt.header...).want(http.StatusAccepted)
		})
	}
}

// An instance with any ID of UTF-8 text without control characters is found under the links of the response.
func TestStart_anyInstanceID_isFoundByItsLinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.StringMatching(`[\x20-\x7e\x{a0}-\x{d7ff}\x{e000}-\x{10ffff}]{1,40}`).Draw(rt, "id")
		h := setup(t)
		body, err := json.Marshal(map[string]string{"instanceId": id})
		if err != nil {
			rt.Fatal(err)
		}
		var started httpapi.StartResponse
		a := h.call(t, http.MethodPost, hello, string(body))
		if err := json.Unmarshal(a.Body.Bytes(), &started); err != nil || started.InstanceID != id ||
			strings.ContainsAny(started.Links.Status, "?#% ") {
			rt.Fatalf("started %s: %v", a.Body, err)
		}
		var found struct {
			InstanceID string `json:"instanceId"`
		}
		got := h.call(t, http.MethodGet, started.Links.Executions, "")
		if err := json.Unmarshal(got.Body.Bytes(), &found); err != nil || found.InstanceID != id {
			rt.Fatalf("%s finds %s: %v", started.Links.Executions, got.Body, err)
		}
	})
}
