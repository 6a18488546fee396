package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/provider/dynamo"
)

// lambda calls the API of Lambda. This module does not import an SDK client for the function.
func lambda(t *testing.T, method, path, body string) []byte {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	who, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, os.Getenv("AWS_ENDPOINT_URL")+"/2015-03-31"+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), "lambda", cfg.Region,
		time.Now()); err != nil {
		t.Fatal(err)
	}
	callResponse, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer callResponse.Body.Close()
	b, err := io.ReadAll(callResponse.Body)
	if err != nil || callResponse.StatusCode > 299 || callResponse.Header.Get("X-Amz-Function-Error") != "" {
		t.Fatalf("%s %s: got HTTP %d: %s, error %v", method, path, callResponse.StatusCode, b, err)
	}
	return b
}

// unmap disables the mapping between the worker function and its queue.
func unmap(t *testing.T) {
	t.Helper()
	var all struct {
		EventSourceMappings []struct {
			UUID           string `json:"UUID"`
			EventSourceArn string `json:"EventSourceArn"`
			State          string `json:"State"`
		} `json:"EventSourceMappings"`
	}
	look := func() (uuid, state string) {
		if err := json.Unmarshal(lambda(t, http.MethodGet, "/event-source-mappings", ""), &all); err != nil {
			t.Fatal(err)
		}
		for _, m := range all.EventSourceMappings {
			if strings.Contains(m.EventSourceArn, "Workdefault") {
				return m.UUID, m.State
			}
		}
		t.Fatalf("no mapping of the work queue in %+v", all.EventSourceMappings)
		return "", ""
	}
	uuid, _ := look()
	lambda(t, http.MethodPut, "/event-source-mappings/"+uuid, `{"Enabled":false}`)
	for range 100 {
		if _, state := look(); state == "Disabled" {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("got %+v", all.EventSourceMappings)
}

// lease is the result of a renewal.
type lease struct {
	ExpiresAt time.Time `json:"expiresAt"`
	Cancel    *struct {
		Reason      string    `json:"reason"`
		Message     string    `json:"message"`
		RequestedAt time.Time `json:"requestedAt"`
	} `json:"cancel"`
	Error *struct {
		Code string `json:"code"`
	} `json:"error"`
}

// foreignWorker is a worker that is not a function of the hub and uses only SQS and HTTP.
type foreignWorker struct {
	t       *testing.T
	queues  *sqs.Client
	url     string
	body    string // body of its renewal requests
	queried int
}

// visible is the visibility timeout of messages, in seconds.
const visible = 3

// receive receives a message from the queue.
func (s *foreignWorker) receive(wait int32) (token, handle string) {
	s.t.Helper()
	out, err := s.queues.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &s.url, VisibilityTimeout: visible, WaitTimeSeconds: wait,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(out.Messages) == 0 {
		return "", ""
	}
	var item struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(*out.Messages[0].Body), &item); err != nil || item.Token == "" {
		s.t.Fatalf("got %s, error %v", *out.Messages[0].Body, err)
	}
	return item.Token, *out.Messages[0].ReceiptHandle
}

// renew renews the lease, alternately through API Gateway and by invoking the renewer.
func (s *foreignWorker) renew() lease {
	s.t.Helper()
	var callResponse struct {
		Leases []lease `json:"leases"`
	}
	var b []byte
	if s.queried++; s.queried%2 == 0 {
		r, err := http.Post(os.Getenv(client.EndpointVariable)+"/work-items/renew", "application/json", strings.NewReader(s.body))
		if err != nil {
			s.t.Fatal(err)
		}
		defer r.Body.Close()
		if b, err = io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
			s.t.Fatalf("got HTTP %d: %s, error %v", r.StatusCode, b, err)
		}
	} else {
		b = lambda(s.t, http.MethodPost, "/functions/perdure-patient-renewer/invocations", s.body)
	}
	if err := json.Unmarshal(b, &callResponse); err != nil || len(callResponse.Leases) != 1 {
		s.t.Fatalf("got %s, error %v", b, err)
	}
	return callResponse.Leases[0]
}

// hold renews the lease for several visibility timeouts, and checks that no other worker receives the message.
func (s *foreignWorker) hold() {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < 4*visible*time.Second; {
		l := s.renew()
		if left := time.Until(l.ExpiresAt); l.Error != nil || l.Cancel != nil || left < (visible-2)*time.Second ||
			left > visible*time.Second {
			s.t.Fatalf("renewal %d: got %+v, remaining %v", s.queried, l, left)
		}
		if other, _ := s.receive(1); other != "" {
			s.t.Fatalf("after %d renewals: the message is visible to others", s.queried)
		}
	}
}

// A worker in another language holds the lock of a message for several visibility timeouts. It renews its lease through
// API Gateway and by invoking the renewer. The renewals report the cancel of its activity and the reason.
func TestRenewal_workerInAnotherLanguage_keepsLockAndObservesCancel(t *testing.T) {
	shortrun.Skip(t)
	c := longTimeoutHub(t)
	p, err := dynamo.Open(t.Context(), "patient")
	if err != nil {
		t.Fatal(err)
	}
	unmap(t)
	if _, err := c.Start(t.Context(), "one-of-two", 0, client.WithInstanceID("foreign")); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &foreignWorker{t: t, queues: sqs.NewFromConfig(cfg), url: p.Config().WorkQueues["default"]}
	token, handle := s.receive(10)
	if token == "" {
		t.Fatal("got no message")
	}
	s.body = fmt.Sprintf(`{"visibilityTimeout":%d,"leases":[{"token":%q,"receiptHandle":%q}]}`, visible, token, handle)
	s.hold()
	t.Logf("held for %d s by %d renewals, where SQS locks for %d s", 4*visible, s.queried, visible)
	if err := c.CancelActivity(t.Context(), "foreign", 3, "that will do"); err != nil {
		t.Fatal(err)
	}
	var l lease
	for range 50 {
		if l = s.renew(); l.Cancel != nil {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	if l.Cancel == nil || l.Cancel.Reason != "requested" || l.Cancel.Message != "that will do" ||
		l.Cancel.RequestedAt.IsZero() || l.Error != nil {
		t.Fatalf("after the cancel: got %+v", l)
	}
	if _, err := s.queues.DeleteMessage(t.Context(),
		&sqs.DeleteMessageInput{QueueUrl: &s.url, ReceiptHandle: &handle}); err != nil {
		t.Fatal(err)
	}
	end, err := c.Wait(t.Context(), "foreign")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](end); err != nil || got != "requested: that will do" {
		t.Errorf("got %q, error %v", got, err)
	}
	valid(t, c, "foreign")
}
