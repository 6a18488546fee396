package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/infra/template"
	"github.com/perdure/perdure/internal/awsrequest"
)

// deployFlags are the flags of deploy.
type deployFlags struct {
	stack, app, buildTags, binaries, template, bucket string
	parameters, tags                                  []string
	yes                                               bool
}

// connection connects to CloudFormation and to a bucket. bucket is empty for the bucket of the tool.
type connection func(ctx context.Context, bucket string) (StackAPI, CodeStore, error)

// Deploy returns the command deploy.
func Deploy(env *cli.Env) *cobra.Command {
	return deployCommand(env, func(ctx context.Context, bucket string) (StackAPI, CodeStore, error) {
		return connect(ctx, env, bucket)
	})
}

func deployCommand(env *cli.Env, open connection) *cobra.Command {
	f := deployFlags{app: ".", buildTags: "lambda.norpc,perdure_lambda"}
	cmd := &cobra.Command{
		Use: "deploy", Short: "Deploy a hub with CloudFormation",
		Long: `Deploy a hub with CloudFormation, without the CDK or Node.js.

The command builds the four functions of the application, uploads new code, and creates or updates the
stack from the template of perdure template. It shows the changes and asks for confirmation. Then it prints
each changed resource, and the outputs of the stack. The stack keeps parameters that are not set.

The command can be interrupted and repeated. If CloudFormation is changing the stack, the command follows
the change, and then continues. A failed change is rolled back. The command does not delete stacks: use
aws cloudformation delete-stack, which keeps the table and the payloads.

Without --bucket, code is stored in the bucket perdure-deploy-<account>-<region>, which the command creates.
Do not delete code that a stack uses: a rollback needs it.`,
		Example: `  perdure deploy --hub orders
  perdure deploy --hub orders --parameter WorkerMemory=512 --parameter Retention=30d --yes`,
		Args: func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), env, open)
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	flags := cmd.Flags()
	flags.StringVar(&f.stack, "stack", "", "stack name (default: perdure- and the hub name)")
	flags.StringVar(&f.app, "app", f.app, "directory with functions/orchestrator, worker, renewer and api")
	flags.StringVar(&f.buildTags, "build-tags", f.buildTags, "tags of go build, comma-separated")
	flags.StringVar(&f.binaries, "binaries", "", "directory with orchestrator/bootstrap, … to deploy instead of --app")
	flags.StringVar(&f.template, "template", "", "template file of infra/cdk/cmd/reference -standalone, "+
		"for example with more work queues")
	flags.StringVar(&f.bucket, "bucket", "", "existing bucket for the code, in the region of the stack")
	flags.StringArrayVar(&f.parameters, "parameter", nil, "template parameter as NAME=VALUE; repeatable")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag of the stack and its resources as KEY=VALUE; repeatable, "+
		"replaces all tags")
	flags.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	cmd.MarkFlagsMutuallyExclusive("app", "binaries")
	cmd.MarkFlagsMutuallyExclusive("build-tags", "binaries")
	return cmd
}

// Names that CloudFormation and the construct accept.
var (
	stackName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,127}$`)
	hubName   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)
)

// run deploys a stack.
func (f *deployFlags) run(ctx context.Context, env *cli.Env, open connection) error {
	r, err := f.request(env)
	if err != nil {
		return err
	}
	stacks, code, err := open(ctx, f.bucket)
	if err != nil {
		return err
	}
	d := &Deployer{Stacks: stacks, Code: code, Progress: term.LineWriter{Writer: env.Stderr}, Sleep: env.Sleep}
	result, err := d.Deploy(ctx, r)
	if interrupted, ok := errors.AsType[*InterruptedError](err); ok {
		return cli.Exitf(cli.CodeError, "%s", interrupted.Error())
	}
	if err != nil {
		return err
	}
	return env.PrintResult(result, result.text())
}

// request checks the flags.
func (f *deployFlags) request(env *cli.Env) (*Request, error) {
	r := &Request{Stack: cmp.Or(f.stack, "perdure-"+env.HubName), Hub: env.HubName}
	if !hubName.MatchString(r.Hub) {
		return nil, fmt.Errorf("--hub: must match %s, is %q", hubName, r.Hub)
	}
	if !stackName.MatchString(r.Stack) {
		return nil, fmt.Errorf("--stack: must match %s, is %q", stackName, r.Stack)
	}
	raw := template.JSON
	if f.template != "" {
		var err error
		if raw, err = os.ReadFile(f.template); err != nil {
			return nil, fmt.Errorf("--template: %w", err)
		}
	}
	var err error
	if r.Template, err = ParseTemplate(raw); err != nil {
		return nil, fmt.Errorf("--template: %w", err)
	}
	if r.Parameters, err = ParsePairs("--parameter", f.parameters); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) { // before anything is built
		if err := r.Template.check(name, r.Parameters[name]); err != nil {
			return nil, err
		}
	}
	if r.Tags, err = ParsePairs("--tag", f.tags); err != nil {
		return nil, err
	}
	r.Functions = func(context.Context, string) ([]Function, error) { return ReadBinaries(f.binaries) }
	if f.binaries == "" {
		b := &Builder{App: f.app, Tags: f.buildTags, Environ: os.Environ(), Output: env.Stderr}
		if err := b.check(); err != nil {
			return nil, err
		}
		r.Functions = func(ctx context.Context, architecture string) ([]Function, error) {
			fmt.Fprintf(env.Stderr, "building the functions of %s for %s\n", term.Clean(f.app), architecture)
			return b.Build(ctx, architecture)
		}
	}
	r.Confirm = func(ctx context.Context, c *ChangeSet) error { return f.confirm(ctx, env, r.Stack, c) }
	return r, nil
}

// ParsePairs parses values of a repeatable flag.
func ParsePairs(flag string, list []string) (map[string]string, error) {
	all := map[string]string{}
	for _, pair := range list {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%s: must be NAME=VALUE, is %q", flag, pair)
		}
		if _, again := all[key]; again {
			return nil, fmt.Errorf("%s: %s is set twice", flag, key)
		}
		all[key] = value
	}
	return all, nil
}

// confirm prints the changes and asks for confirmation.
func (f *deployFlags) confirm(ctx context.Context, env *cli.Env, stack string, c *ChangeSet) error {
	fmt.Fprintf(env.Stderr, "%s", c.table())
	losses := strings.Join(c.Losses(), ", ")
	if losses != "" {
		fmt.Fprintf(env.Stderr, "WARNING: data, messages or timers of removed or replaced resources may be lost: %s\n",
			term.Clean(losses))
	}
	if f.yes {
		if losses != "" {
			return errors.New("nothing was changed: the change set removes or may replace tables, queues, buckets or " +
				"schedule groups; run the command without --yes to confirm this")
		}
		return nil
	}
	return cli.Ask(ctx, env.Stdin, env.Stderr, "change stack "+stack+": continue?", "nothing was changed")
}

// table returns the changes as text.
func (c *ChangeSet) table() string {
	t := term.Table{Header: []string{"ACTION", "RESOURCE", "TYPE", "REPLACEMENT"}}
	counts := map[string]int{}
	for _, change := range c.Changes {
		action := strings.ToLower(change.Action)
		counts[action]++
		replacement := map[string]string{"True": "yes", "False": "no", "Conditional": "possible"}[change.Replacement]
		t.Add(term.Clean(action), term.Clean(change.Resource), term.Clean(change.Type), term.OrDash(replacement))
	}
	parts := make([]string, 0, len(counts))
	for _, action := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", action, counts[action]))
	}
	return t.String() + term.Clean(strings.Join(parts, ", ")) + "\n"
}

// text returns the outputs of a stack.
func (r *Result) text() string {
	t := term.Table{Header: []string{"OUTPUT", "VALUE"}}
	t.Add("stack", r.Stack)
	t.Add("status", r.Status)
	for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		t.Add(term.Clean(name), term.Clean(r.Outputs[name]))
	}
	return t.String()
}

// Account is a connection to the account and the region of the default AWS credentials.
type Account struct {
	Stacks  StackAPI
	Buckets BucketAPI
	Region  string
	// ID is the number of the account. It is empty in a connection for an existing bucket.
	ID string

	calls      *caller
	s3Endpoint string
}

// Connect connects to AWS with the default credentials.
func Connect(ctx context.Context, env *cli.Env) (*Account, error) {
	a, err := connectAnonymously(ctx, env)
	if err != nil {
		return nil, err
	}
	read := cli.ReadIdentity
	if env.Identity != nil {
		read = env.Identity
	}
	identity, err := read(ctx)
	if err != nil {
		return nil, err
	}
	a.ID = identity.Account
	a.Buckets = &buckets{a.calls, a.s3Endpoint, a.ID}
	return a, nil
}

// connectAnonymously is like Connect, without the number of the account and its buckets.
func connectAnonymously(ctx context.Context, env *cli.Env) (*Account, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("load AWS settings: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region; set AWS_REGION")
	}
	base := aws.ToString(cfg.BaseEndpoint)
	a := &Account{
		Region: cfg.Region, calls: newCaller(&cfg, env.Now, env.Sleep),
		s3Endpoint: cmp.Or(env.Getenv("AWS_ENDPOINT_URL_S3"), base),
	}
	a.Stacks = &cloudFormation{a.calls, awsrequest.Endpoint(serviceCloudFormation, cfg.Region,
		cmp.Or(env.Getenv("AWS_ENDPOINT_URL_CLOUDFORMATION"), base))}
	return a, nil
}

// Code returns a bucket of the account for code. Ensure creates it.
func (a *Account) Code(name string) CodeStore {
	return &bucket{caller: a.calls, name: name, endpoint: a.s3Endpoint, owner: a.ID}
}

// connect connects to CloudFormation and to a bucket. An empty name selects the bucket of the tool.
func connect(ctx context.Context, env *cli.Env, name string) (StackAPI, CodeStore, error) {
	if name != "" {
		a, err := connectAnonymously(ctx, env)
		if err != nil {
			return nil, nil, err
		}
		return a.Stacks, a.Code(name), nil
	}
	a, err := Connect(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	return a.Stacks, a.Code(defaultBucket(a.ID, a.Region)), nil
}
