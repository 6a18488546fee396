package deployment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/perdure/perdure/internal/sleep"

	"github.com/perdure/perdure/internal/awsrequest"
)

// response is a response of a service. Status 0 closes the connection.
type response struct {
	status int
	body   string
}

// service is an AWS service with fixed responses. It records the requests.
type service struct {
	URL       string
	responses []response
	requests  []*http.Request
	bodies    []string
	slept     []time.Duration
}

func newService(t *testing.T, responses ...response) (*service, *caller) {
	t.Helper()
	s := &service{responses: responses}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		next := s.responses[0]
		if len(s.responses) > 1 {
			s.responses = s.responses[1:]
		}
		if next.status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(next.status)
		_, _ = io.WriteString(w, next.body)
	}))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s, newCaller(&aws.Config{
		Region: "eu-west-1", HTTPClient: server.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "session"}, nil
		}),
	}, func() time.Time { return time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC) },
		func(_ context.Context, d time.Duration) error {
			s.slept = append(s.slept, d)
			return nil
		})
}

// refusal returns an error response of CloudFormation.
func refusal(status int, code, message string) response {
	return response{status, fmt.Sprintf(`<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">`+
		`<Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>`, code, message)}
}

func stacksOf(s *service, c *caller) *cloudFormation { return &cloudFormation{c, s.URL} }

func TestCall_temporaryErrors_areRetried(t *testing.T) {
	t.Parallel()
	s, c := newService(t, refusal(400, "Throttling", "Rate exceeded"), response{503, "busy"}, response{},
		response{200, `<DescribeStacksResponse><DescribeStacksResult><Stacks/></DescribeStacksResult></DescribeStacksResponse>`})
	if stack, err := stacksOf(s, c).DescribeStack(t.Context(), "a"); stack != nil || err != nil {
		t.Errorf("got %v, %v", stack, err)
	}
	if len(s.requests) < 4 || len(s.slept) < 3 || s.slept[2] < s.slept[0]/2 {
		t.Errorf("%d requests, pauses %v", len(s.requests), s.slept)
	}
}

func TestCall_throttledForLong_fails(t *testing.T) {
	t.Parallel()
	s, c := newService(t, refusal(400, "Throttling", "Rate exceeded"))
	_, err := stacksOf(s, c).DescribeStack(t.Context(), "a")
	if !isTransient(err) || !strings.Contains(err.Error(), "describe stack: Throttling: Rate exceeded") {
		t.Errorf("got %v", err)
	}
	if len(s.requests) != maxAttempts || slices.Max(s.slept) > longestPause {
		t.Errorf("%d requests, pauses %v", len(s.requests), s.slept)
	}
}

func TestCall_permanentErrors_areNotRetried(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"AccessDenied":          "describe stack: AccessDenied: text",
		"ExpiredToken":          "renew the AWS credentials",
		"RequestExpired":        "the clock of this machine",
		"SignatureDoesNotMatch": "check the AWS credentials",
	} {
		s, c := newService(t, refusal(403, code, "text"))
		_, err := stacksOf(s, c).DescribeStack(t.Context(), "a")
		if err == nil || !strings.Contains(err.Error(), want) || len(s.requests) != 1 {
			t.Errorf("%s: got %v after %d requests", code, err, len(s.requests))
		}
	}
}

// slowHTTP has no response to the first request until the attempt times out.
type slowHTTP struct{ requests int }

func (h *slowHTTP) Do(r *http.Request) (*http.Response, error) {
	if h.requests++; h.requests == 1 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestCall_attemptTimesOut_isRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &slowHTTP{}
		credentials := credentials.NewStaticCredentialsProvider("AKID", "secret", "")
		c := newCaller(&aws.Config{HTTPClient: h, Credentials: credentials}, time.Now, sleep.For)
		_, err := c.call(t.Context(), &awsrequest.Request{Operation: "a", Service: "b", Method: http.MethodGet, URL: "https://c"})
		if err != nil || h.requests != 2 {
			t.Errorf("got %v after %d requests", err, h.requests)
		}
	})
}

func TestCall_interruptedWhileRetrying_returnsCause(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{503, ""})
	ctx, cancel := context.WithCancel(t.Context())
	c.sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return context.Cause(ctx)
	}
	if _, err := stacksOf(s, c).DescribeStack(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCloudFormation_createChangeSet_sendsParameters(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, `<CreateChangeSetResponse/>`})
	err := stacksOf(s, c).CreateChangeSet(t.Context(), &ChangeSetRequest{
		Stack: "orders", Name: "perdure-1", Create: true, TemplateURL: "https://x/t.json", Token: "create-1",
		Parameters: map[string]string{"B": "2 & 3", "A": "1"}, Kept: []string{"C"}, Tags: map[string]string{"team": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	form, err := url.ParseQuery(s.bodies[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Action": "CreateChangeSet", "Version": "2010-05-15", "ChangeSetType": "CREATE", "StackName": "orders",
		"ChangeSetName": "perdure-1", "TemplateURL": "https://x/t.json", "ClientToken": "create-1",
		"Capabilities.member.1":              "CAPABILITY_IAM",
		"Parameters.member.1.ParameterKey":   "A",
		"Parameters.member.2.ParameterValue": "2 & 3",
		"Parameters.member.3.ParameterKey":   "C", "Parameters.member.3.UsePreviousValue": "true",
		"Tags.member.1.Key": "team", "Tags.member.1.Value": "x",
	} {
		if got := form.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	authorization := s.requests[0].Header.Get("Authorization")
	if !strings.Contains(authorization, "/20260701/eu-west-1/cloudformation/aws4_request") {
		t.Errorf("authorization %s", authorization)
	}
}

func TestCloudFormation_describeStack_decodesStack(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
<DescribeStacksResult><Stacks><member><StackId>arn:1</StackId><StackName>orders</StackName>
<StackStatus>UPDATE_COMPLETE</StackStatus><Parameters><member><ParameterKey>HubName</ParameterKey>
<ParameterValue>orders</ParameterValue></member></Parameters><Outputs><member><OutputKey>ApiUrl</OutputKey>
<OutputValue>https://a</OutputValue></member></Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`},
		refusal(400, "ValidationError", "Stack with id orders does not exist"))
	stack, err := stacksOf(s, c).DescribeStack(t.Context(), "orders")
	if err != nil || stack.ID != "arn:1" || stack.Status != "UPDATE_COMPLETE" || stack.Parameters["HubName"] != "orders" ||
		stack.Outputs["ApiUrl"] != "https://a" {
		t.Errorf("got %+v, %v", stack, err)
	}
	if stack, err := stacksOf(s, c).DescribeStack(t.Context(), "orders"); stack != nil || err != nil {
		t.Errorf("missing stack: got %+v, %v", stack, err)
	}
}

func TestCloudFormation_describeChangeSet_readsAllPages(t *testing.T) {
	t.Parallel()
	page := func(resource, token string) response {
		return response{200, `<R><DescribeChangeSetResult><ChangeSetId>arn:1</ChangeSetId><Status>CREATE_COMPLETE</Status>` +
			`<ExecutionStatus>AVAILABLE</ExecutionStatus><Changes><member><Type>Resource</Type><ResourceChange>` +
			`<Action>Modify</Action><LogicalResourceId>` + resource + `</LogicalResourceId>` +
			`<ResourceType>AWS::SQS::Queue</ResourceType><Replacement>False</Replacement></ResourceChange></member></Changes>` +
			token + `</DescribeChangeSetResult></R>`}
	}
	s, c := newService(t, page("A", "<NextToken>more</NextToken>"), page("B", ""))
	set, err := stacksOf(s, c).DescribeChangeSet(t.Context(), "orders", "perdure-1")
	if err != nil || len(set.Changes) != 2 || set.Changes[1] != (Change{"Modify", "B", "AWS::SQS::Queue", "False"}) ||
		set.Status != "CREATE_COMPLETE" || set.ID != "arn:1" {
		t.Errorf("got %+v, %v", set, err)
	}
	// Another run may have replaced the change set of the name.
	if !strings.Contains(s.bodies[1], "NextToken=more") || !strings.Contains(s.bodies[1], "ChangeSetName=arn%3A1&") {
		t.Errorf("second request %s", s.bodies[1])
	}
}

func TestCloudFormation_stackEvents_stopsAtKnownEvent(t *testing.T) {
	t.Parallel()
	page := func(token string, ids ...string) response {
		body := `<R><DescribeStackEventsResult><StackEvents>`
		for _, id := range ids {
			body += `<member><EventId>` + id + `</EventId><Timestamp>2026-07-01T03:00:00.123Z</Timestamp></member>`
		}
		return response{200, body + `</StackEvents>` + token + `</DescribeStackEventsResult></R>`}
	}
	s, c := newService(t, page("<NextToken>more</NextToken>", "4", "3"), page("<NextToken>last</NextToken>", "2", "1"))
	events, err := stacksOf(s, c).StackEvents(t.Context(), "orders", func(e *Event) bool { return e.ID == "1" })
	if err != nil || len(events) != 3 || events[2].ID != "2" || len(s.requests) != 2 {
		t.Errorf("got %+v, %v after %d requests", events, err, len(s.requests))
	}
}

func TestCloudFormation_missingChangeSet_isDeleted(t *testing.T) {
	t.Parallel()
	for _, code := range []response{
		refusal(404, codeNoChangeSet, "ChangeSet [x] does not exist"), refusal(400, codeValidation, "Stack [x] does not exist"),
	} {
		s, c := newService(t, code)
		if err := stacksOf(s, c).DeleteChangeSet(t.Context(), "orders", "x"); err != nil {
			t.Errorf("got %v", err)
		}
	}
}
