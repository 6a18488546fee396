package probes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// objectProbes checks assumptions about S3.
type objectProbes struct {
	Objects dynamo.BucketAPI
	Bucket  string
}

func (p *objectProbes) checks() []Check {
	return []Check{
		{Name: "s3-consistency", Assumptions: []string{"A171"}, Run: p.consistency},
		{Name: "s3-list", Assumptions: []string{"A175"}, Run: p.list},
		{Name: "s3-missing", Assumptions: []string{"A172"}, Run: p.missing},
	}
}

// objects is the prefix of the keys.
const objects = "selftest/"

// keys returns the keys that follow one, without the prefix.
func (p *objectProbes) keys(ctx context.Context, prefix, after string) (keys []string, err error) {
	page, err := p.Objects.ListObjects(ctx, p.Bucket, prefix, after)
	if err != nil {
		return nil, undecided(err)
	}
	for i := range page {
		keys = append(keys, page[i].Key[len(prefix):])
	}
	return keys, nil
}

func (p *objectProbes) consistency(ctx context.Context) (string, error) {
	const prefix, writes, most = objects + "consistency/", 20, 100
	for i := range writes {
		key, value := prefix+strconv.Itoa(i), strconv.Itoa(i)
		if err := p.Objects.PutObject(ctx, p.Bucket, key, []byte(value)); err != nil {
			return "", undecided(err)
		}
		read, err := p.Objects.GetObject(ctx, p.Bucket, key, most)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			return "", fmt.Errorf("write %d is not visible: %w", i, err)
		case err != nil:
			return "", undecided(err)
		case string(read) != value:
			return "", fmt.Errorf("write %d is not visible", i)
		}
		listed, err := p.keys(ctx, prefix, "")
		if err != nil {
			return "", err
		}
		if len(listed) != 1 || listed[0] != value {
			return "", fmt.Errorf("after write %d, the list is %q", i, listed)
		}
		if err := p.Objects.DeleteObjects(ctx, p.Bucket, []string{key}); err != nil {
			return "", undecided(err)
		}
	}
	return fmt.Sprintf("%d of %d writes and deletes visible", writes, writes), nil
}

func (p *objectProbes) list(ctx context.Context) (string, error) {
	const prefix = objects + "list/"
	want := []string{"~", "a", "é", "B", "\U0001F600", "0", "b", "a/b"}
	for _, key := range want {
		if err := p.Objects.PutObject(ctx, p.Bucket, prefix+key, []byte("x")); err != nil {
			return "", undecided(err)
		}
	}
	slices.Sort(want) // by bytes
	got, err := p.keys(ctx, prefix, "")
	if err != nil {
		return "", err
	}
	if !slices.Equal(got, want) {
		return "", fmt.Errorf("got the order %q", got)
	}
	const skipped = 3
	if got, err = p.keys(ctx, prefix, prefix+want[skipped-1]); err != nil {
		return "", err
	}
	if !slices.Equal(got, want[skipped:]) {
		return "", errors.New("the list after a key has other keys")
	}
	return fmt.Sprintf("%d keys in the order of bytes", len(want)), nil
}

// missing reads an object before and after its deletion, with the permissions to list and read.
func (p *objectProbes) missing(ctx context.Context) (string, error) {
	const key, most = objects + "missing", 1
	if err := p.Objects.PutObject(ctx, p.Bucket, key, []byte("x")); err != nil {
		return "", undecided(err)
	}
	if _, err := p.keys(ctx, key, ""); err != nil {
		return "", err
	}
	if _, err := p.Objects.GetObject(ctx, p.Bucket, key, most); err != nil {
		return "", undecided(err)
	}
	if err := p.Objects.DeleteObjects(ctx, p.Bucket, []string{key}); err != nil {
		return "", undecided(err)
	}
	_, err := p.Objects.GetObject(ctx, p.Bucket, key, most)
	response, _ := errors.AsType[*awsrequest.APIError](err)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return "the status of a missing object is 404", nil
	case err == nil:
		return "", errors.New("a deleted object can be read")
	case response != nil && (response.Code == "AccessDenied" || response.Status == http.StatusNotFound):
		return "", fmt.Errorf("a missing object is reported as %s with status %d", response.Code, response.Status)
	default:
		return "", undecided(err)
	}
}
