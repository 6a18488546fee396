package admin_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
)

// Open uses the endpoint of the environment, and connects only without one.
func TestOpen_environment_selectsTransport(t *testing.T) {
	p := fakeprovider.New(clock, "hello")
	connected := 0
	connect := func() (admin.Backend, error) { connected++; return p, nil }
	for endpoint, isRemote := range map[string]bool{"": false, "https://api.example.com": true} {
		t.Setenv(client.EndpointVariable, endpoint)
		connected = 0
		a, err := admin.Open(connect, admin.WithClock(clock), client.WithMaxAttempts(1))
		if err != nil || (connected == 0) != isRemote {
			t.Fatalf("%q: connected %d times, %v", endpoint, connected, err)
		}
		_, err = a.PurgeQueues(t.Context())
		if _, got := errors.AsType[*admin.NoRouteError](err); got != isRemote {
			t.Errorf("%q: remote %v, want %v: %v", endpoint, got, isRemote, err)
		}
	}

	t.Setenv(client.EndpointVariable, "")
	a, err := admin.Open(connect, admin.WithClock(clock), client.WithMaxAttempts(1))
	if err != nil {
		t.Fatal(err)
	}
	j, err := a.StartJob(t.Context(), admin.JobRequest{Operation: admin.OperationCancel, All: true})
	if err != nil || !j.CreatedAt.Equal(began) {
		t.Errorf("created at %v by the clock of the option, %v", j.CreatedAt, err)
	}
}

func TestOpen_failure_isReturned(t *testing.T) {
	down := errors.New("down")
	connect := func() (admin.Backend, error) { return nil, down }
	t.Setenv(client.EndpointVariable, "")
	if _, err := admin.Open(connect); !errors.Is(err, down) {
		t.Errorf("error %v", err)
	}
	t.Setenv(client.EndpointVariable, "ftp://a")
	if _, err := admin.Open(connect); err == nil || errors.Is(err, down) {
		t.Errorf("an invalid endpoint: error %v", err)
	}
}
