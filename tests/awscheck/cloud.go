package awscheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/perdure/perdure/tests/localcloud"
)

// Cloud is a local AWS whose requests are checked. Env has the endpoint of the proxy.
type Cloud struct {
	*localcloud.Cloud

	proxy    *Proxy
	dir      string
	deployed bool // there is a hub, whose functions send requests
}

// Start starts a local AWS like [localcloud.Start], with a proxy between the emulator and all binaries: functions, the
// clients of the tests, and commands. On LocalStack, requests are not checked. The caller must call Stop.
func Start(ctx context.Context, command string, args ...string) (*Cloud, error) {
	if strings.HasPrefix(os.Getenv("CLOUD"), "localstack") {
		c, err := localcloud.Start(ctx, command, args...)
		return &Cloud{Cloud: c}, err
	}
	dir, err := os.MkdirTemp("", "perdure-awscheck-")
	if err != nil {
		return nil, fmt.Errorf("awscheck: %w", err)
	}
	file := filepath.Join(dir, "emulator.json")
	proxy, err := NewProxy(ctx, endpointIn(file))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c, err := localcloud.Start(ctx, command, append([]string{"--through", proxy.URL, file}, args...)...)
	if err != nil {
		_, closing := proxy.Close()
		return nil, errors.Join(err, closing, os.RemoveAll(dir))
	}
	return &Cloud{c, proxy, dir, command == "up"}, nil
}

// Main is like [localcloud.Main] with a local AWS whose requests are checked. It fails if AWS would reject a request.
func Main(tests func() int) (code int) {
	return localcloud.While(localcloud.EndpointVariable, localcloud.StartLimit,
		func(ctx context.Context) (endpoint string, stop func() error, err error) {
			c, err := Start(ctx, "cloud")
			if err != nil {
				return "", nil, err
			}
			return c.Env["AWS_ENDPOINT_URL"], c.Stop, nil
		}, tests)
}

// endpointIn returns a function that reads the endpoint of the emulator, which local.py writes to a file.
func endpointIn(file string) func() (string, error) {
	var known atomic.Pointer[string]
	return func() (string, error) {
		if endpoint := known.Load(); endpoint != nil {
			return *endpoint, nil
		}
		text, err := os.ReadFile(file) //nolint:gosec // in the folder of this cloud
		if err != nil {
			return "", fmt.Errorf("endpoint of the emulator: %w", err)
		}
		var found struct {
			Endpoint string `json:"endpoint"`
		}
		if err := json.Unmarshal(text, &found); err != nil {
			return "", fmt.Errorf("endpoint of the emulator: %w", err)
		}
		known.Store(&found.Endpoint)
		return found.Endpoint, nil
	}
}

// AddSession is like [Proxy.AddSession].
func (c *Cloud) AddSession(accessKey string) {
	if c.proxy != nil {
		c.proxy.AddSession(accessKey)
	}
}

// Stop waits until all requests have been checked, and stops the cloud. It prints the numbers of requests to standard
// error. The error lists the requests that AWS would reject.
func (c *Cloud) Stop() error {
	if c.proxy == nil {
		return c.Cloud.Stop()
	}
	report, err := c.proxy.Close() // the checks read policies from the emulator
	if err == nil {
		fmt.Fprint(os.Stderr, report)
		err = report.Err()
		if err == nil && c.deployed && !report.hasFunctions() {
			err = errors.New("awscheck: no request of a function was checked; start the cloud with --enforce-iam")
		}
	}
	return errors.Join(err, c.Cloud.Stop(), os.RemoveAll(c.dir))
}
