package awscheck

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/tests/awscheck/iam"
	"github.com/perdure/perdure/tests/awscheck/model"
	"github.com/perdure/perdure/tests/awscheck/rules"
	"github.com/perdure/perdure/tests/localcloud"
)

// lookUpLimit is the time limit for the check of one request, which may read policies and keys from the emulator.
const lookUpLimit = time.Minute

// installLimit is the time limit for the installation of botocore.
const installLimit = 10 * time.Minute

// checker checks requests one after another.
type checker struct {
	emulator func() (string, error)
	report   *Report

	models *model.Models // nil before the first request
	cloud  *directory
	// sessions has the access keys of sessions of the tests.
	sessions sync.Map
}

func newChecker(emulator func() (string, error)) *checker {
	return &checker{emulator: emulator, report: newReport()}
}

func (c *checker) check(ctx context.Context, e *exchange) {
	ctx, cancel := context.WithTimeout(ctx, lookUpLimit)
	defer cancel()
	scope := e.signer()
	if reason := e.excluded(scope); reason != "" {
		c.report.skip(reason)
		return
	}
	if err := c.open(); err != nil {
		c.report.fail("checker", scope.service, err.Error(), "")
		return
	}
	caller := c.caller(ctx, scope.accessKey)
	call, err := c.decode(scope.service, e)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, model.ErrProtocol):
		if caller.role == "" {
			c.report.skip(scope.service)
			return
		}
		c.report.fail(caller.name(), scope.service, "the request cannot be checked: "+err.Error(), "")
		return
	case err != nil:
		c.report.fail(caller.name(), scope.service, err.Error(), e.method+" "+e.path)
		return
	}
	operation := scope.service + ":" + call.Operation.Name
	faults := call.Service.Validate(call.Operation, call.Input)
	if len(faults) == 0 {
		addChecksums(call, e.header)
		faults = rules.Check(call, func(name string) *rules.Table { return c.cloud.table(ctx, scope.region, name) })
	}
	faults = append(faults, c.authorize(ctx, caller, scope.region, call, e.status)...)
	c.report.count(caller.name(), operation)
	for _, fault := range faults {
		c.report.fail(caller.name(), operation, fault, excerpt(call.Input))
	}
}

// caller returns the identity of an access key. Like the root user, a session of a test has no role to compare with.
func (c *checker) caller(ctx context.Context, accessKey string) *identity {
	if _, ofTest := c.sessions.Load(accessKey); ofTest {
		return &identity{}
	}
	return c.cloud.caller(ctx, accessKey)
}

// addChecksums adds the checksum of the body as a member. S3 accepts one for each request with the algorithm of a
// checksum, but the models list these headers only for some operations.
func addChecksums(call *model.Call, header http.Header) {
	if call.Service.Name != "s3" {
		return
	}
	for name := range header {
		if algorithm, ok := strings.CutPrefix(name, "X-Amz-Checksum-"); ok {
			call.Input["Checksum"+strings.ToUpper(algorithm)] = header.Get(name)
		}
	}
	if sum := header.Get("Content-MD5"); sum != "" {
		call.Input["ContentMD5"] = sum
	}
}

// excluded returns the reason why a request is not one to an AWS service, or an empty string.
func (e *exchange) excluded(scope signer) string {
	switch {
	case strings.Contains(e.host, ".execute-api.") || strings.Contains(e.host, ".lambda-url."):
		return "API of a hub"
	case scope.service == "execute-api":
		return "API of a hub"
	case scope.service == "" && strings.HasPrefix(e.path, "/_"):
		return "emulator"
	case scope.service == "":
		return "unsigned"
	default:
		return ""
	}
}

// loadModels returns the models, which all checkers of a process share.
var loadModels = sync.OnceValues(func() (*model.Models, error) {
	repository, err := localcloud.Repository()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installLimit)
	defer cancel()
	return model.Install(ctx, repository)
})

// open loads what the checks need, after the emulator has started.
func (c *checker) open() error {
	if c.models != nil {
		return nil
	}
	endpoint, err := c.emulator()
	if err != nil {
		return err
	}
	models, err := loadModels()
	if err != nil {
		return err
	}
	c.models, c.cloud = models, newDirectory(endpoint)
	return nil
}

func (c *checker) decode(service string, e *exchange) (*model.Call, error) {
	s, err := c.models.Service(service)
	if err != nil {
		return nil, err
	}
	return s.Decode(&model.Request{
		Method: e.method, Path: e.path, Query: e.query, Header: e.header, Body: e.body, Size: e.size,
	})
}

// authorize returns the permissions that the role of a caller lacks.
func (c *checker) authorize(
	ctx context.Context, caller *identity, region string, call *model.Call, status int,
) (faults []string) {
	if caller.err != nil {
		return []string{"the caller is unknown: " + caller.err.Error()}
	}
	if caller.role == "" {
		return nil
	}
	place := iam.Place{Account: caller.account, Region: region, PartitionKey: func(table string) string {
		if t := c.cloud.table(ctx, region, table); t != nil {
			return t.Partition
		}
		return ""
	}}
	needed, err := iam.Requests(call, place)
	if err != nil {
		return []string{"the permissions are unknown: " + err.Error()}
	}
	if status == http.StatusNotFound && call.Service.Name == "s3" {
		if r, ok := iam.Missing(call.Operation.Name, call.Input); ok {
			needed = append(needed, r)
		}
	}
	for i := range needed {
		decision, err := c.cloud.evaluate(ctx, caller, &needed[i])
		if err != nil {
			faults = append(faults, "the policies are unknown: "+err.Error())
		} else if decision != iam.Allowed {
			faults = append(faults, "IAM: "+needed[i].Action+" on "+needed[i].Resource+": "+decision.String())
		}
	}
	return faults
}
