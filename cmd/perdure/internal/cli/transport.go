package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/client/sigv4"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/provider"
)

// Environment variables of the authorization of API requests.
const (
	TokenVariable        = "PERDURE_API_TOKEN"         //nolint:gosec // the name of a variable
	tokenCommandVariable = "PERDURE_API_TOKEN_COMMAND" //nolint:gosec // the name of a variable
)

const (
	flagHub = "hub"
	flagAPI = "api"
)

// AddTransportFlags adds the global flags that select a hub.
func (env *Env) AddTransportFlags(flags *pflag.FlagSet) {
	flags.StringVar(&env.HubName, flagHub, cmp.Or(env.Getenv("PERDURE_HUB"), DefaultHub), "hub name (PERDURE_HUB)")
	flags.StringVar(&env.Endpoint, flagAPI, env.Getenv(client.EndpointVariable), "URL of the HTTP API, without /v1 "+
		"("+client.EndpointVariable+")")
	env.flags = flags
}

// API returns the URL of the HTTP API, or "" for direct access. The flag --hub overrides the environment variable of
// the URL.
func (env *Env) API() string {
	if env.flags != nil && env.flags.Changed(flagHub) && !env.flags.Changed(flagAPI) {
		return ""
	}
	return env.Endpoint
}

// CheckTransport rejects --hub together with --api, because the API determines the hub.
func (env *Env) CheckTransport() error {
	if env.flags.Changed(flagHub) && env.flags.Changed(flagAPI) && env.Endpoint != "" {
		return errors.New("--hub and --api cannot be combined: the API determines the hub")
	}
	return nil
}

// RequireDirect returns an error if the command would use the HTTP API.
func (env *Env) RequireDirect(cmd *cobra.Command, reason string) error {
	if env.API() == "" {
		return nil
	}
	return fmt.Errorf("%s is not available over the HTTP API: %s; omit --api, or set --hub to override %s",
		cmd.CommandPath(), reason, client.EndpointVariable)
}

// HubLabel returns the name of the hub, or the URL of its API.
func (env *Env) HubLabel() string { return cmp.Or(env.API(), env.HubName) }

// Place returns the hub or the API for an error message.
func (env *Env) Place() string {
	if endpoint := env.API(); endpoint != "" {
		return fmt.Sprintf("the hub of API %q", endpoint)
	}
	return fmt.Sprintf("hub %q", env.HubName)
}

// Authorizer authorizes requests to HTTP APIs.
type Authorizer struct {
	environment func(name string) string
	now         func() time.Time
	stderr      io.Writer // of the token command
}

// Authorizer returns the authorizer of the command's environment.
func (env *Env) Authorizer() Authorizer { return Authorizer{env.Getenv, env.Now, env.Stderr} }

// Hub returns the clients of the hub of an HTTP API.
func (a Authorizer) Hub(ctx context.Context, endpoint string) (Hub, error) {
	opts, err := a.dialOptions(ctx, endpoint)
	if err != nil {
		return Hub{}, err
	}
	cl, err := client.Dial(endpoint, opts...)
	if err != nil {
		return Hub{}, invalidEndpoint(err)
	}
	operated, err := admin.Dial(endpoint, opts...)
	if err != nil {
		return Hub{}, invalidEndpoint(err)
	}
	return Hub{Client: cl, Admin: operated}, nil
}

// Dial returns a client that authorizes requests to an HTTP API.
func (a Authorizer) Dial(ctx context.Context, endpoint string) (*apiclient.Client, error) {
	opts, err := a.dialOptions(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	c, err := apiclient.Dial(endpoint, opts...)
	if err != nil {
		return nil, invalidEndpoint(err)
	}
	return c, nil
}

func invalidEndpoint(err error) error {
	return fmt.Errorf("--api must be the URL of an endpoint, "+
		"such as https://a1b2c3d4.execute-api.eu-west-1.amazonaws.com: %w", err)
}

// Authorization is the way in which requests to an endpoint are authorized.
type Authorization string

// The authorizations of endpoints.
const (
	AuthorizationIAM   Authorization = "IAM"
	AuthorizationToken Authorization = "token"
	AuthorizationNone  Authorization = "none"
)

// Of returns the authorization for an endpoint. Credentials are never sent over plain HTTP, except to this
// machine.
func (a Authorizer) Of(endpoint string) (Authorization, error) {
	u, err := apiclient.ParseEndpoint(endpoint)
	if err != nil {
		return "", invalidEndpoint(err)
	}
	host := u.Hostname()
	token := a.getenv(TokenVariable) != "" || a.getenv(tokenCommandVariable) != ""
	service, _ := apiclient.ServiceOf(host)
	local, plain := apiclient.IsLoopback(host), u.Scheme != "https"
	switch {
	case plain && !local && (token || service != ""):
		return "", fmt.Errorf("--api must start with https:// for %s, because requests contain credentials", host)
	case token:
		return AuthorizationToken, nil
	case plain || local:
		return AuthorizationNone, nil
	default:
		return AuthorizationIAM, nil
	}
}

// getenv returns an environment variable. Tests may not set the environment.
func (a Authorizer) getenv(name string) string {
	if a.environment == nil {
		return ""
	}
	return a.environment(name)
}

func (a Authorizer) dialOptions(ctx context.Context, endpoint string) ([]client.DialOption, error) {
	how, err := a.Of(endpoint)
	if err != nil {
		return nil, err
	}
	switch how {
	case AuthorizationToken:
		return []client.DialOption{client.WithToken(a.Token())}, nil
	case AuthorizationIAM:
		cfg, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, fmt.Errorf("load AWS credentials for the API: %w", err)
		}
		if u, err := url.Parse(endpoint); err == nil && cfg.Region == "" {
			if service, _ := apiclient.ServiceOf(u.Hostname()); service == "" {
				return nil, nil // a custom domain, perhaps without authorization; a signature needs a region
			}
		}
		return []client.DialOption{sigv4.WithConfig(cfg)}, nil
	default:
		return nil, nil
	}
}

// tokenLifetime is the time for which the output of the token command is reused. JWTs live for at least five minutes.
const tokenLifetime = time.Minute

// Token returns the source of bearer tokens: PERDURE_API_TOKEN, or the output of the command in
// PERDURE_API_TOKEN_COMMAND, which runs at most once a minute.
func (a Authorizer) Token() func(ctx context.Context) (string, error) {
	if token := a.getenv(TokenVariable); token != "" {
		return func(context.Context) (string, error) { return checkToken(TokenVariable, token) }
	}
	command := a.getenv(tokenCommandVariable)
	var mu sync.Mutex
	var token string
	var read time.Time
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if token != "" && a.now().Sub(read) < tokenLifetime {
			return token, nil
		}
		run := exec.CommandContext(ctx, "/bin/sh", "-c", command) //nolint:gosec // the user sets the command
		run.Stderr = a.stderr
		out, err := run.Output()
		if err != nil {
			return "", fmt.Errorf("run %s: %w", tokenCommandVariable, err)
		}
		token, err = checkToken(tokenCommandVariable, strings.TrimSpace(string(out)))
		read = a.now()
		return token, err
	}
}

// checkToken rejects a token that cannot be a header. The error does not contain the token.
func checkToken(source, token string) (string, error) {
	invalid := func(r rune) bool { return r <= ' ' || r > '~' }
	if token == "" || strings.ContainsFunc(token, invalid) {
		return "", &provider.FieldError{Field: source, Problem: "must provide a token of visible ASCII characters"}
	}
	return token, nil
}
