package dynamodblocal_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/tests/dynamodblocal"
	"github.com/perdure/perdure/tests/localcloud"
)

func TestServer_respondsUntilStopped(t *testing.T) {
	t.Parallel()
	s, err := dynamodblocal.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tables := dynamodb.NewFromConfig(localcloud.Config(s.Endpoint))
	if _, err := tables.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Error(err)
	}
	where, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	if reachable(t, where.Host) {
		t.Error("the server listens after Stop")
	}
}

func TestStart_javaFails_errorHasItsOutput(t *testing.T) {
	t.Setenv("JAVA_TOOL_OPTIONS", "-XX:+NoSuchOption")
	_, err := dynamodblocal.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "NoSuchOption") {
		t.Error(err)
	}
}

func TestStart_contextIsCancelled_returnsItsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(net.ErrClosed)
	s, err := dynamodblocal.Start(ctx)
	if s != nil || err == nil || !strings.Contains(err.Error(), net.ErrClosed.Error()) {
		t.Error(s, err)
	}
}

func reachable(t *testing.T, address string) bool {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return false
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return true
}
