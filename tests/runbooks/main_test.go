// Package runbooks_test simulates each problem of docs/operate/runbooks.md on a local AWS, and runs the commands of the
// page.
package runbooks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/awscheck"
	"github.com/perdure/perdure/tests/localcloud"
)

const hubName = "runbooks"

// deployment is a hub on a local cloud.
type deployment struct {
	cloud     *awscheck.Cloud
	place     dynamo.HubConfig
	client    *client.Client
	admin     *admin.Client
	tables    *dynamodb.Client
	queues    *sqs.Client
	functions *lambda.Client
	settings  *ssm.Client
}

// hub is the deployment that all tests share. They run one after another. The last test changes its table.
var hub *deployment

// elsewhere receives the deployment of another region, which is created while the first tests wait.
var elsewhere = make(chan *deployment, 1)

// path is the PATH of the commands of the page, with perdure from this checkout and aws.
var path string

func TestMain(m *testing.M) {
	code, err := withHub(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "runbooks:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func withHub(f func() int) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	tools, err := filepath.Abs(filepath.Join(".venv", "bin"))
	if err != nil {
		return 1, err
	}
	if _, err := os.Stat(filepath.Join(tools, "aws")); err != nil {
		return 1, errors.New("AWS CLI is not installed; run make test-runbooks")
	}
	bin, err := os.MkdirTemp("", "perdure-runbooks-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(bin)
	build := exec.CommandContext(ctx, "go", "build", "-tags", "perdure_quick", "-o", filepath.Join(bin, "perdure"),
		"../../cmd/perdure")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1, err
	}
	path = bin + string(os.PathListSeparator) + tools + string(os.PathListSeparator) + os.Getenv("PATH")

	if hub, err = deploy(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, hub.cloud.Stop()) }()
	go func() {
		d, err := deploy(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "runbooks: another region:", err)
		}
		elsewhere <- d
	}()
	code = f()
	if d := <-elsewhere; d != nil {
		return code, d.cloud.Stop()
	}
	return max(code, 1), nil
}

// deploy deploys the application of the fault tests. The visibility timeout is short, because a crash is noticed when
// it ends.
func deploy(ctx context.Context) (*deployment, error) {
	cloud, err := awscheck.Start(ctx, "up", "--app", "tests/faults/app", "--hub", hubName, "--port", "0",
		"--enforce-iam",
		"--param", "WatchRate=rate(1 minute)", "--param", "InboxTimeout=3", "--param", "InboxVisibility=3", "--param",
		"WorkTimeout=8",
		"--param", "LockTimeout=5", "--param", "LockRenewalBuffer=2", "--param", "MaxAttempts=1")
	if err != nil {
		return nil, err
	}
	config := localcloud.Config(cloud.Env["AWS_ENDPOINT_URL"])
	d := &deployment{
		cloud: cloud, tables: dynamodb.NewFromConfig(config), queues: sqs.NewFromConfig(config),
		functions: lambda.NewFromConfig(config), settings: ssm.NewFromConfig(config),
	}
	if err := d.find(ctx); err != nil {
		return nil, errors.Join(err, cloud.Stop())
	}
	return d, nil
}

// parameter is the name of the SSM parameter with the configuration of the hub.
const parameter = "/perdure/" + hubName + "/config"

// opening guards the environment variables of this process, which dynamo.Open reads.
var opening sync.Mutex

// find reads the configuration of the hub and creates its clients.
func (d *deployment) find(ctx context.Context) error {
	out, err := d.settings.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(parameter)})
	if err != nil {
		return fmt.Errorf("read %s: %w", parameter, err)
	}
	opening.Lock()
	defer opening.Unlock()
	for name, value := range d.cloud.Env {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	p, err := dynamo.Open(ctx, hubName)
	if err != nil {
		return fmt.Errorf("open the hub of %s: %w", *out.Parameter.Value, err)
	}
	d.place, d.client, d.admin = p.Config(), client.New(p), admin.New(p)
	return nil
}
