package operations

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/internal/apiclient"
)

// probeTimeout limits the time for all requests of whoami.
const probeTimeout = 30 * time.Second

// whoamiResult is the --json output of whoami.
type whoamiResult struct {
	// Identity is the ARN of the AWS credentials, or the subject of the JWT. It is empty for a token that is no JWT.
	// Verified is false for a subject.
	Identity string `json:"identity"`
	Verified bool   `json:"verified"`
	Account  string `json:"account,omitempty"`
	// Transport is "direct" or "api". Hub or API is set.
	Transport     string            `json:"transport"`
	Hub           string            `json:"hub,omitempty"`
	API           string            `json:"api,omitempty"`
	Region        string            `json:"region,omitempty"`
	Authorization cli.Authorization `json:"authorization"`
	Operations    []permission      `json:"operations"`
}

// WhoAmI returns the command whoami.
func WhoAmI(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show your identity and permissions", ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Show the caller's identity, the transport, and the operations that the caller may use.

The identity is that of the AWS credentials, or the subject of the JWT, whose signature is not verified.
Over the HTTP API, the command sends one request for each operation, and changes nothing. Reads name objects
that do not exist. Other operations are not called: their requests are invalid, and the API rejects them. If
the API receives such a request, the operation is "allowed (inferred)". "denied" is status 401 or 403. After
any other failure, the operation is "unknown". The API logs rejected requests with status 400. With direct
access, IAM decides each call to AWS, and no operations are listed.`,
		Example: `  perdure whoami
  perdure whoami --api https://a1b2c3d4.execute-api.eu-west-1.amazonaws.com --json`,
		Args: func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := whoami(cmd.Context(), env)
			if err != nil {
				return err
			}
			return env.PrintResult(r, whoamiText(r))
		},
	}
}

func whoami(ctx context.Context, env *cli.Env) (*whoamiResult, error) {
	r := &whoamiResult{Transport: "direct", Authorization: cli.AuthorizationIAM, Operations: []permission{}}
	endpoint := env.API()
	if endpoint == "" {
		r.Hub = env.HubName
	} else {
		how, err := env.Authorizer().Of(endpoint)
		if err != nil {
			return nil, err
		}
		r.Transport, r.API, r.Authorization = "api", endpoint, how
	}
	if err := identify(ctx, env, r); err != nil {
		return nil, err
	}
	if endpoint == "" {
		return r, nil
	}
	c, err := env.Authorizer().Dial(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	_, region := apiclient.ServiceOf(c.Endpoint.Hostname())
	r.Region = cmp.Or(region, r.Region)
	ctx, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	r.Operations = readPermissions(ctx, c)
	return r, nil
}

// identify sets the identity of the caller.
func identify(ctx context.Context, env *cli.Env, r *whoamiResult) error {
	switch r.Authorization {
	case cli.AuthorizationNone:
		return nil
	case cli.AuthorizationToken:
		token, err := env.Authorizer().Token()(ctx)
		if err != nil {
			return err
		}
		if subject, err := cli.Subject(token); err == nil { // a Lambda authorizer can accept tokens that are no JWTs
			r.Identity = subject
		}
		return nil
	case cli.AuthorizationIAM:
	}
	read := env.Identity
	if read == nil {
		read = cli.ReadIdentity
	}
	who, err := read(ctx)
	r.Identity, r.Account, r.Region, r.Verified = who.ARN, who.Account, who.Region, err == nil
	return err
}

func whoamiText(r *whoamiResult) string {
	var b strings.Builder
	identity := cmp.Or(term.Clean(r.Identity), "none")
	switch {
	case r.Authorization != cli.AuthorizationToken:
	case r.Identity == "":
		identity = "unknown (the token has no subject)"
	default:
		identity += " (JWT, not verified)"
	}
	fmt.Fprintf(&b, "identity:   %s\n", identity)
	if r.API == "" {
		fmt.Fprintf(&b, "transport:  direct, hub %s", term.Clean(r.Hub))
	} else {
		fmt.Fprintf(&b, "transport:  HTTP API %s, authorization %s", term.Clean(r.API), r.Authorization)
	}
	if r.Region != "" {
		fmt.Fprintf(&b, ", region %s", term.Clean(r.Region))
	}
	b.WriteString("\n")
	if r.API == "" {
		b.WriteString("operations: IAM decides each call to AWS\n")
		return b.String()
	}
	t := term.Table{Header: []string{"OPERATION", "ALLOWED", "GRANT"}}
	note := ""
	for _, p := range r.Operations {
		is := p.Allowed
		if p.Inferred {
			is += " (inferred)"
			note = "\ninferred: the operation was not called, but the API received and rejected an invalid request\n"
		}
		t.Add(p.Operation, is, p.Grant)
	}
	return b.String() + "\n" + t.String() + note
}
