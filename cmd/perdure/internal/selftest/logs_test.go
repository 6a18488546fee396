package selftest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/perdure/perdure/internal/awsrequest"
)

// logsServer serves pages of CloudWatch Logs, by their tokens, and returns a client.
func logsServer(t *testing.T, pages map[string]string) *logs {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in filterRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if in.Group != "/aws/lambda/f" || in.Pattern != `"some text"` ||
			r.Header.Get("X-Amz-Target") != "Logs_20140328.FilterLogEvents" {
			t.Errorf("got %+v with %v", in, r.Header)
		}
		page, known := pages[in.NextToken]
		if !known {
			w.WriteHeader(http.StatusBadRequest)
			page = `{"__type":"ThrottlingException","message":"Rate exceeded"}`
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return newLogs(&aws.Config{
		Region: "eu-west-1", BaseEndpoint: &s.URL,
		Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
	}, time.Now)
}

func TestLines_severalPages_areJoined(t *testing.T) {
	t.Parallel()
	l := logsServer(t, map[string]string{
		"":  `{"events":[],"nextToken":"2"}`,
		"2": `{"events":[{"message":"a"},{"message":"b"}],"nextToken":"3"}`,
		"3": `{"events":[{"message":"c"}]}`,
	})
	lines, err := l.Lines(t.Context(), "/aws/lambda/f", "some text")
	if err != nil || !slices.Equal(lines, []string{"a", "b", "c"}) {
		t.Errorf("got %q, %v", lines, err)
	}
}

func TestLines_throttledCall_isTransient(t *testing.T) {
	t.Parallel()
	_, err := logsServer(t, nil).Lines(t.Context(), "/aws/lambda/f", "some text")
	if !awsrequest.IsTransient(err) {
		t.Errorf("got %v", err)
	}
}
