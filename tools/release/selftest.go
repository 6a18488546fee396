package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
)

// installSelfTest installs the command from the module proxy, and runs perdure selftest outside of any module, until it
// has built its functions from the module cache. The cache is read-only, and no other proxy is available.
func (c *consumer) installSelfTest(ctx context.Context) (err error) {
	bin, cache := filepath.Join(c.dir, "bin"), filepath.Join(c.dir, "readonly")
	user := *c
	proxies := append(slices.Clone(c.proxies), fileURL(filepath.Join(c.dir, "mod", downloads)), "off")
	user.env = append(slices.Clone(c.env), "GOPROXY="+strings.Join(proxies, ","), "GOSUMDB=off", "GOMODCACHE="+cache,
		"GOBIN="+bin, "GOFLAGS=-trimpath -buildvcs=false")
	defer func() { // RemoveAll cannot remove read-only directories
		_, failed := user.run(context.WithoutCancel(ctx), "", "clean", "-modcache")
		err = errors.Join(err, failed)
	}()
	if _, err := user.run(ctx, "", "install", modulePath+"/cmd/perdure@"+c.version); err != nil {
		return err
	}
	aws := newEmptyAccount()
	defer aws.Close()
	architecture := "x86_64"
	if runtime.GOARCH == "arm64" {
		architecture = "arm64"
	}
	//nolint:gosec // the installed command
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "perdure"), "selftest", "--yes", "--architecture", architecture)
	cmd.Dir = bin
	// The environment of a user, with settings that must not change the build.
	cmd.Env = append(slices.Clone(user.env), "GOFLAGS=-mod=mod", "GOWORK="+filepath.Join(c.dir, "none", "go.work"),
		"AWS_ENDPOINT_URL="+aws.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	text, err := cmd.CombinedOutput()
	if source := filepath.Join(cache, "github.com", "perdure", "perdure@"+c.version); err == nil ||
		!aws.uploads.Load() || !strings.Contains(string(text), "building the functions of "+source) {
		return fmt.Errorf("perdure selftest did not build its functions from %s: %w\n%s", source, err, text)
	}
	if _, err := user.run(ctx, "getter", "mod", "verify"); err != nil {
		return fmt.Errorf("perdure selftest changed the module cache: %w", err)
	}
	return nil
}

// emptyAccount is an AWS account without stacks and buckets, which rejects everything else. The functions have been
// built when the command creates a bucket for them.
type emptyAccount struct {
	*httptest.Server

	uploads atomic.Bool
}

func newEmptyAccount() *emptyAccount {
	a := &emptyAccount{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const most = 1 << 20
		body, _ := io.ReadAll(io.LimitReader(r.Body, most))
		status, response := http.StatusForbidden,
			"<Error><Code>AccessDenied</Code><Message>empty account</Message></Error>"
		switch text := string(body); {
		case strings.Contains(text, "Action=GetCallerIdentity"):
			status, response = http.StatusOK, "<GetCallerIdentityResponse><GetCallerIdentityResult>"+
				"<Account>123456789012</Account><Arn>arn:aws:iam::123456789012:root</Arn>"+
				"</GetCallerIdentityResult></GetCallerIdentityResponse>"
		case strings.Contains(text, "Action=DescribeStacks") && strings.Contains(text, "StackName="):
			status, response = http.StatusBadRequest, "<ErrorResponse><Error><Code>ValidationError</Code>"+
				"<Message>Stack does not exist</Message></Error></ErrorResponse>"
		case strings.Contains(text, "Action=DescribeStacks"):
			status, response = http.StatusOK, "<DescribeStacksResponse/>"
		case r.Method == http.MethodGet && r.URL.Path == "/":
			status, response = http.StatusOK, "<ListAllMyBucketsResult/>"
		case r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, "/perdure-selftest-"):
			a.uploads.Store(true)
		}
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, response) // the command reports a failure
	}))
	return a
}
