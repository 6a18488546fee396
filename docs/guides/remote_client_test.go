package guides_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/client/sigv4"
	"github.com/perdure/perdure/provider/dynamo"
)

func dial(ctx context.Context) (*client.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return client.Dial("https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", sigv4.WithConfig(cfg))
}

func open(ctx context.Context) (*client.Client, error) {
	return client.Open(func() (client.Backend, error) { return dynamo.Open(ctx, "orders") })
}

func TestRemoteClient_environment_selectsTransport(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv(client.EndpointVariable, "https://api.example.com")
	for name, connect := range map[string]func(context.Context) (*client.Client, error){"Dial": dial, "Open": open} {
		c, err := connect(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := c.PrepareStart(t.Context(), "fulfil-order", nil); err == nil ||
			!strings.Contains(err.Error(), "HTTP API") {
			t.Errorf("%s returned a client that is not remote: %v", name, err)
		}
	}
}
