package awscheck_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/tests/awscheck"
)

// emulator replaces the emulator. It knows the function "worker", its role, and the table "hub".
type emulator struct {
	// policy is the inline policy of the role. The other policies are those of the queue and of the bucket.
	policy, queuePolicy, bucketPolicy string
	// managed and boundary are the managed policy and the permissions boundary of the role, if it has them.
	managed, boundary string
	// other handles the requests of the tests. The default responds with an empty JSON object.
	other http.HandlerFunc

	mu       sync.Mutex
	received []*http.Request
	bodies   []string
}

const (
	account     = "000000000000"
	functionARN = "arn:aws:lambda:us-east-1:" + account + ":function:worker"
	roleARN     = "arn:aws:iam::" + account + ":role/WorkerRole"
	workerQueue = "arn:aws:sqs:us-east-1:000000000000:work"
)

// function is the access key that the emulator gives to the function.
var function = func() string {
	digest := sha256.Sum256([]byte(functionARN + ":" + roleARN))
	return "ASIA" + strings.ToUpper(hex.EncodeToString(digest[:8]))
}()

func (e *emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	var result string
	switch form.Get("Action") {
	case "ListRolePolicies":
		result = "<PolicyNames><member>hub</member></PolicyNames><IsTruncated>false</IsTruncated>"
	case "GetRolePolicy":
		e.mu.Lock()
		result = "<PolicyDocument>" + url.QueryEscape(e.policy) + "</PolicyDocument>"
		e.mu.Unlock()
	case "ListAttachedRolePolicies":
		if e.managed != "" {
			result = "<AttachedPolicies><member><PolicyArn>managed</PolicyArn></member></AttachedPolicies>"
		}
	case "GetRole":
		if e.boundary != "" {
			result = "<PermissionsBoundary><PermissionsBoundaryArn>boundary</PermissionsBoundaryArn></PermissionsBoundary>"
		}
		result = "<Role><RoleName>WorkerRole</RoleName>" + result + "</Role>"
	case "GetPolicy":
		result = "<Policy><DefaultVersionId>v2</DefaultVersionId></Policy>"
	case "GetPolicyVersion":
		document := map[string]string{"managed": e.managed, "boundary": e.boundary}[form.Get("PolicyArn")]
		result = "<PolicyVersion><Document>" + url.QueryEscape(document) + "</Document></PolicyVersion>"
	default:
		e.respond(w, r, string(body))
		return
	}
	action := form.Get("Action")
	_, _ = fmt.Fprintf(w, "<%sResponse><%sResult>%s</%sResult></%sResponse>", action, action, result, action, action)
}

func (e *emulator) respond(w http.ResponseWriter, r *http.Request, body string) {
	if r.URL.Path == "/2015-03-31/functions" {
		_, _ = io.WriteString(w, `{"Functions":[{"FunctionArn":"`+functionARN+`","Role":"`+roleARN+`"}]}`)
		return
	}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DescribeTable") {
		_, _ = io.WriteString(w, `{"Table":{"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],`+
			`"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}}`)
		return
	}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetQueueAttributes") && e.queuePolicy != "" {
		_ = json.NewEncoder(w).Encode(map[string]any{"Attributes": map[string]string{"Policy": e.queuePolicy}})
		return
	}
	if r.URL.RawQuery == "policy" {
		if e.bucketPolicy == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, e.bucketPolicy)
		return
	}
	e.mu.Lock()
	e.received, e.bodies = append(e.received, r), append(e.bodies, body)
	e.mu.Unlock()
	if e.other != nil {
		e.other(w, r)
		return
	}
	_, _ = io.WriteString(w, "{}")
}

// start starts a proxy in front of the emulator.
func (e *emulator) start(t *testing.T) *awscheck.Proxy {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	p, err := awscheck.NewProxy(t.Context(), func() (string, error) { return server.URL, nil })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// config returns the configuration of a client of a proxy.
func config(p *awscheck.Proxy, accessKey string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &p.URL, RetryMaxAttempts: 1,
		HTTPClient:  awsrequest.HTTPClient{Next: http.DefaultClient},
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, "secret", ""),
	}
}

// report closes a proxy and returns its report.
func report(t *testing.T, p *awscheck.Proxy) *awscheck.Report {
	t.Helper()
	r, err := p.Close()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func statement(effect, action, resource string) string {
	return fmt.Sprintf(`{"Effect":%q,"Action":%q,"Resource":%q}`, effect, action, resource)
}

func policyOf(statements ...string) string {
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

// send sends a message to the work queue, with a delay.
func send(t *testing.T, p *awscheck.Proxy, accessKey string, delay int32) {
	t.Helper()
	_, err := sqs.NewFromConfig(config(p, accessKey)).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(p.URL + "/" + account + "/work"), MessageBody: aws.String("b"), DelaySeconds: delay,
	}, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true })
	if err != nil {
		t.Fatal(err)
	}
}

func TestProxy_anyRequest_isForwardedUnchanged(t *testing.T) {
	e := &emulator{other: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Requestid", "42")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "response")
	}}
	p := e.start(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.URL+"/b/a%20b%2Fc/~d?x=1&y=%2F", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "api.execute-api.us-east-1.amazonaws.com"
	r.Header.Set("X-Test", "v")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusConflict || string(body) != "response" ||
		response.Header.Get("X-Amzn-Requestid") != "42" {
		t.Errorf("got HTTP %d %q, error %v", response.StatusCode, body, err)
	}
	got := e.received[0]
	if got.Method != http.MethodPut || got.RequestURI != "/b/a%20b%2Fc/~d?x=1&y=%2F" || got.Host != r.Host ||
		got.Header.Get("X-Test") != "v" || got.ContentLength != 4 || e.bodies[0] != "body" ||
		got.Header.Get("X-Forwarded-For") != "" || got.Header.Get("Accept-Encoding") != "gzip" {
		t.Errorf("got %s %s of %s, %v, body %q", got.Method, got.RequestURI, got.Host, got.Header, e.bodies[0])
	}
	if skipped := report(t, p).Skipped; skipped["API of a hub"] != 1 {
		t.Errorf("got %v", skipped)
	}
}

func TestProxy_requestThatAWSRejects_isAViolation(t *testing.T) {
	e := &emulator{policy: policyOf(statement("Allow", "sqs:SendMessage", workerQueue))}
	p := e.start(t)
	send(t, p, "test", 0)
	send(t, p, function, 900)
	send(t, p, function, 901)
	send(t, p, function, 901)
	r := report(t, p)
	if r.Counts["root sqs:SendMessage"] != 1 || r.Counts["worker sqs:SendMessage"] != 3 {
		t.Errorf("got counts %v", r.Counts)
	}
	if len(r.Violations) != 1 || r.Violations[0].Count != 2 || r.Violations[0].Caller != "worker" ||
		r.Violations[0].Fault != "DelaySeconds: 901 is not from 0 to 900" {
		t.Fatalf("got error %v", r.Err())
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "sqs:SendMessage of worker, 2 times: DelaySeconds: 901") {
		t.Errorf("got error %v", err)
	}
}

func TestProxy_modelIsViolated_namesTheMember(t *testing.T) {
	e := &emulator{}
	p := e.start(t)
	_, err := sqs.NewFromConfig(config(p, "test")).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String("q"), AttributeNames: []sqstypes.QueueAttributeName{"Depth"},
	})
	if err != nil {
		t.Fatal(err)
	}
	v := report(t, p).Violations
	if len(v) != 1 || !strings.HasPrefix(v[0].Fault, `AttributeNames[0]: "Depth" is not one of the values All`) ||
		v[0].Excerpt != `{"AttributeNames":["Depth"],"QueueUrl":"q"}` {
		t.Errorf("got %+v", v)
	}
}

func TestProxy_roleLacksPermission_isAViolation(t *testing.T) {
	e := &emulator{policy: policyOf(
		statement("Allow", "dynamodb:PutItem", "arn:aws:dynamodb:us-east-1:000000000000:table/hub"),
		statement("Allow", "dynamodb:DeleteItem", "*"), statement("Deny", "dynamodb:DeleteItem", "*"),
	)}
	p := e.start(t)
	hub, key := aws.String("hub"), map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: "p"}}
	other := map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: "other"}}
	third := map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: "third"}}
	client := dynamodb.NewFromConfig(config(p, function))
	_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []ddbtypes.TransactWriteItem{
			{Put: &ddbtypes.Put{TableName: hub, Item: key}},
			{Delete: &ddbtypes.Delete{TableName: hub, Key: other}},
			{ConditionCheck: &ddbtypes.ConditionCheck{
				TableName: hub, Key: third, ConditionExpression: aws.String("attribute_exists(pk)"),
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, v := range report(t, p).Violations {
		faults = append(faults, v.Fault)
	}
	const table = " on arn:aws:dynamodb:us-east-1:000000000000:table/hub: "
	want := []string{
		"IAM: dynamodb:DeleteItem" + table + "a policy denies it",
		"IAM: dynamodb:ConditionCheckItem" + table + "no policy allows it",
	}
	if !slices.Equal(faults, want) {
		t.Errorf("got %q, want %q", faults, want)
	}
}

// A stack that is deployed again may have other policies.
func TestProxy_policyChanges_newPolicyApplies(t *testing.T) {
	e := &emulator{policy: policyOf(statement("Allow", "sqs:ReceiveMessage", "*"))}
	p := e.start(t)
	e.mu.Lock()
	e.policy = policyOf(statement("Allow", "sqs:SendMessage", workerQueue))
	e.mu.Unlock()
	send(t, p, function, 0)
	if r := report(t, p); r.Err() != nil {
		t.Errorf("got error %v", r.Err())
	}
}

func TestProxy_managedPolicyAndBoundary_apply(t *testing.T) {
	nothing, sending := policyOf(), policyOf(statement("Allow", "sqs:SendMessage", workerQueue))
	for name, c := range map[string]struct {
		emulator   *emulator
		violations int
	}{
		"managed policy allows":      {&emulator{policy: nothing, managed: sending}, 0},
		"boundary allows":            {&emulator{policy: sending, boundary: sending}, 0},
		"boundary does not allow":    {&emulator{policy: sending, boundary: nothing}, 1},
		"neither policy nor managed": {&emulator{policy: nothing, managed: nothing}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.emulator.start(t)
			send(t, p, function, 0)
			if v := report(t, p).Violations; len(v) != c.violations {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// A policy of a queue or a bucket can deny what the role may do.
func TestProxy_resourceDenies_isAViolation(t *testing.T) {
	const denies = `{"Statement":{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*"}}`
	e := &emulator{policy: policyOf(statement("Allow", "*", "*")), queuePolicy: denies, bucketPolicy: denies}
	p := e.start(t)
	send(t, p, function, 0)
	get(t, p, "payloads/present")
	var faults []string
	for _, v := range report(t, p).Violations {
		faults = append(faults, v.Fault)
	}
	want := []string{
		"IAM: s3:GetObject on arn:aws:s3:::payloads/present: a policy denies it",
		"IAM: sqs:SendMessage on " + workerQueue + ": a policy denies it",
	}
	if slices.Sort(faults); !slices.Equal(faults, want) {
		t.Errorf("got %q, want %q", faults, want)
	}
}

// get reads an object as the function.
func get(t *testing.T, p *awscheck.Proxy, object string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/"+object, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+function+"/20260102/us-east-1/s3/aws4_request, Signature=x")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

// S3 responds with status 403 for a missing object to a caller that may not list the bucket.
func TestProxy_missingObject_needsPermissionToList(t *testing.T) {
	e := &emulator{
		policy: policyOf(statement("Allow", "s3:GetObject", "arn:aws:s3:::payloads/*")),
		other: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/payloads/present" {
				w.WriteHeader(http.StatusNotFound)
			}
		},
	}
	p := e.start(t)
	get(t, p, "payloads/present")
	get(t, p, "payloads/missing")
	v := report(t, p).Violations
	if len(v) != 1 || v[0].Fault != "IAM: s3:ListBucket on arn:aws:s3:::payloads: no policy allows it" {
		t.Errorf("got %+v", v)
	}
}

func TestProxy_deletionWithoutChecksum_isAViolation(t *testing.T) {
	for header, want := range map[string]string{
		"X-Test": "Delete: the request has no checksum", "X-Amz-Checksum-Sha256": "", "Content-Md5": "",
	} {
		t.Run(header, func(t *testing.T) {
			e := &emulator{policy: policyOf(statement("Allow", "s3:DeleteObject", "arn:aws:s3:::payloads/*"))}
			p := e.start(t)
			body := `<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>k</Key></Object></Delete>`
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/payloads?delete",
				strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization",
				"AWS4-HMAC-SHA256 Credential="+function+"/20260102/us-east-1/s3/aws4_request, Signature=x")
			r.Header.Set(header, "c3Vt")
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()

			var faults []string
			for _, v := range report(t, p).Violations {
				faults = append(faults, v.Fault)
			}
			if got := strings.Join(faults, ", "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A receive waits for messages while other requests continue.
func TestProxy_longPoll_delaysNoOtherRequest(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	e := &emulator{other: func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ReceiveMessage") {
			close(arrived)
			<-release
		}
		_, _ = io.WriteString(w, "{}")
	}}
	p := e.start(t)
	received := make(chan error, 1)
	go func() {
		_, err := sqs.NewFromConfig(config(p, "test")).ReceiveMessage(context.WithoutCancel(t.Context()),
			&sqs.ReceiveMessageInput{QueueUrl: aws.String("q"), WaitTimeSeconds: 20})
		received <- err
	}()
	<-arrived
	for range 100 { // more than wait for their check
		send(t, p, "test", 0)
	}
	close(release)
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	if r := report(t, p); r.Counts["root sqs:ReceiveMessage"] != 1 || r.Counts["root sqs:SendMessage"] != 100 {
		t.Errorf("got %v", r.Counts)
	}
}

// A function that is killed closes its connection. The emulator notices it, and the request is checked.
func TestProxy_clientDisconnects_emulatorNotices(t *testing.T) {
	arrived, noticed := make(chan struct{}), make(chan struct{})
	e := &emulator{other: func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(noticed)
	}}
	p := e.start(t)
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := sqs.NewFromConfig(config(p, "test")).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String("q")})
		ended <- err
	}()
	<-arrived
	kill()
	<-noticed
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if r := report(t, p); r.Counts["root sqs:ReceiveMessage"] != 1 {
		t.Errorf("got %v", r.Counts)
	}
}

func TestProxy_emulatorFails_clientSeesNoResponse(t *testing.T) {
	e := &emulator{other: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
	p := e.start(t)
	_, err := sqs.NewFromConfig(config(p, "test")).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("q")})
	if !errors.Is(err, io.EOF) {
		t.Errorf("got error %v", err)
	}
	if r := report(t, p); r.Counts["root sqs:ReceiveMessage"] != 1 {
		t.Errorf("got %v", r.Counts)
	}
}

func TestProxy_emulatorIsNotRunning_respondsWithStatus502(t *testing.T) {
	p, err := awscheck.NewProxy(t.Context(), func() (string, error) { return "", errors.New("not yet") })
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadGateway {
		t.Errorf("got HTTP %d", response.StatusCode)
	}
	if r := report(t, p); r.Err() != nil || len(r.Counts) > 0 {
		t.Errorf("got error %v, counts %v", r.Err(), r.Counts)
	}
}

func TestProxy_requestThatCannotBeChecked_failsForFunctionsOnly(t *testing.T) {
	e := &emulator{}
	p := e.start(t)
	for _, accessKey := range []string{"test", function} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+accessKey+"/20260102/us-east-1/monitoring/aws4_request, Signature=x")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	r := report(t, p)
	if r.Skipped["monitoring"] != 1 || len(r.Violations) != 1 || r.Violations[0].Caller != "worker" ||
		!strings.HasPrefix(r.Violations[0].Fault, "the request cannot be checked: ") {
		t.Errorf("got %v, %+v", r.Skipped, r.Violations)
	}
}

func TestProxy_sessionOfATest_isOnlyValidated(t *testing.T) {
	e := &emulator{policy: policyOf(statement("Deny", "*", "*"))}
	p := e.start(t)
	p.AddSession("ASIAOFTEST")
	send(t, p, "ASIAOFTEST", 0)
	send(t, p, "ASIAOFTEST", 901)
	if v := report(t, p).Violations; len(v) != 1 || strings.HasPrefix(v[0].Fault, "the caller") {
		t.Errorf("got %+v", v)
	}
}

func TestProxy_configurationOfABucket_isValidated(t *testing.T) {
	e := &emulator{}
	p := e.start(t)
	for _, body := range []string{"", `<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet/></Tagging>`} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.URL+"/payloads?tagging=", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260102/us-east-1/s3/aws4_request, Signature=x")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if v := report(t, p).Violations; len(v) != 1 || v[0].Fault != "Tagging: required member is missing" {
		t.Errorf("got %+v", v)
	}
}

func TestProxy_unknownCaller_isAViolation(t *testing.T) {
	e := &emulator{}
	p := e.start(t)
	send(t, p, "AKIAOTHER", 0)
	v := report(t, p).Violations
	if len(v) != 1 || v[0].Fault != "the caller is unknown: no function has the access key AKIAOTHER" {
		t.Errorf("got %+v", v)
	}
}

func TestReport_largeRequest_hasAShortExcerpt(t *testing.T) {
	e := &emulator{}
	p := e.start(t)
	item := map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: ""}}
	for i := range 100 {
		item[fmt.Sprint("a", i)] = &ddbtypes.AttributeValueMemberS{Value: strings.Repeat("secret", 100)}
	}
	_, err := dynamodb.NewFromConfig(config(p, "test")).PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("hub"), Item: item,
	})
	if err != nil {
		t.Fatal(err)
	}
	v := report(t, p).Violations
	if len(v) != 1 || len(v[0].Excerpt) > 650 || v[0].Fault != "Item.pk: a key attribute is empty" {
		t.Fatalf("got %+v", v)
	}
	if strings.Contains(fmt.Sprint(*v[0]), strings.Repeat("secret", 10)) {
		t.Errorf("got %+v", v[0])
	}
}
