package operations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
)

const (
	// probe is the ID of objects that do not exist, and an unknown query parameter and field. The API rejects a request
	// with an unknown parameter before it calls the operation.
	probe = "perdure-whoami"
	// maxProbes is the maximum number of requests at a time.
	maxProbes = 4

	getHealth = "getHealth"
)

// permission reports whether the caller may use an operation: "allowed", "denied" or "unknown".
type permission struct {
	Operation string `json:"operation"`
	Allowed   string `json:"allowed"`
	// Inferred is set if the operation is allowed and was not called: a request that the API rejects was permitted.
	Inferred bool   `json:"inferred"`
	Grant    string `json:"grant"`
	Reason   string `json:"reason,omitempty"`

	rejected bool // the API rejected the unknown parameter
}

const (
	allowed = "allowed"
	denied  = "denied"
	unknown = "unknown"
)

// readPermissions sends one request for each operation with a route. The requests do not change anything: reads name
// objects that do not exist, and all other requests are invalid in three ways, see newCall. If the first request shows
// that the endpoint does not reject invalid requests, it is not an API of a hub, and only reads are sent.
func readPermissions(ctx context.Context, c *apiclient.Client) []permission {
	c.MaxAttempts = 1
	all := slices.DeleteFunc(api.Operations(), func(o api.Operation) bool { return o.Path == "" })
	found := make([]permission, len(all))
	first := slices.IndexFunc(all, func(o api.Operation) bool { return o.ID == getHealth })
	found[first] = readPermission(ctx, c, &all[first])
	safe := found[first].rejected || found[first].Allowed == denied
	reason := "the endpoint does not reject invalid requests"
	if found[first].Allowed == unknown {
		reason = getHealth + " failed: " + found[first].Reason
	}

	var requests sync.WaitGroup
	free := make(chan struct{}, maxProbes)
	for i := range all {
		o := &all[i]
		if i == first {
			continue
		}
		if !safe && !isRead(o) {
			found[i] = permission{
				Operation: o.ID, Allowed: unknown, Grant: o.Grant,
				Reason: "not requested, because " + reason,
			}
			continue
		}
		free <- struct{}{}
		requests.Go(func() {
			found[i] = readPermission(ctx, c, o)
			<-free
		})
	}
	requests.Wait()
	return found
}

func isRead(o *api.Operation) bool { return !o.Changes && o.Method == http.MethodGet }

// newCall returns a call without an effect. A call that is not a read has an unknown parameter, and also the IDs of
// objects that do not exist and an unknown field.
func newCall(o *api.Operation) apiclient.Call {
	call := apiclient.Call{Operation: o.ID, Path: slices.Repeat([]string{probe}, strings.Count(o.Path, "{"))}
	if !isRead(o) && o.Request != "" && o.Request != api.AnyJSON {
		call.Body = map[string]bool{probe: true}
	}
	if !isRead(o) || o.ID == getHealth {
		call.Query = url.Values{probe: {"true"}}
	}
	return call
}

// readPermission sends the request of an operation. A response of the API means that the request was permitted.
func readPermission(ctx context.Context, c *apiclient.Client, o *api.Operation) permission {
	p := permission{Operation: o.ID, Allowed: unknown, Grant: o.Grant}
	var problem *apiwire.Problem
	call := newCall(o)
	call.Errors = func(of *apiwire.Problem) error { problem = of; return nil }
	_, err := c.Do(ctx, call)
	status := 0
	if problem != nil {
		status = problem.Status
	} else if other, ok := errors.AsType[*apiclient.StatusError](err); ok {
		status = other.Status
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		p.Allowed, p.Reason = denied, fmt.Sprintf("status %d", status)
	case problem != nil && (problem.Code == apiwire.CodeNoRoute || problem.Code == apiwire.CodeMethod):
		p.Reason = "the API does not have the operation"
	case problem != nil || err == nil:
		p.Allowed, p.Inferred = allowed, !isRead(o)
		p.rejected = problem != nil && problem.Code == apiwire.CodeInvalidRequest && problem.Field == probe
	default:
		p.Reason = term.OneLine(err.Error())
	}
	return p
}
