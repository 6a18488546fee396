package httpapi

import (
	"net/url"
	"strings"
	"sync"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
)

// noRoute returns the error for a path without a route. A path may fit a route except for slashes in an ID, because
// HTTP APIs of API Gateway decode slashes. The error then has the form in which to send the ID.
func noRoute(escapedPath string) error {
	id, found := slashed(escapedPath)
	if !found {
		return problem.ErrNoRoute
	}
	return problem.SlashedID(request.ShortForm(id))
}

// routes returns the segments of each route.
var routes = sync.OnceValue(func() (all [][]string) {
	for _, o := range api.Operations() {
		if o.Path != "" {
			all = append(all, segments(o.Path))
		}
	}
	return all
})

// slashed returns the ID of a path if the ID contains slashes. It selects the route with the most matching literal
// segments.
func slashed(escapedPath string) (id string, found bool) {
	path := segments(escapedPath)
	best := 0
	for _, route := range routes() {
		if spread, literals, fits := spreads(route, path); fits && literals > best {
			id, best = spread, literals
		}
	}
	return id, best > 0
}

// spreads reports whether a path fits a route except for an ID that spans several segments. It returns the ID and the
// number of literal segments that match.
func spreads(route, path []string) (id string, literals int, fits bool) {
	more := len(path) - len(route)
	if more < 1 {
		return "", 0, false
	}
	for i, s := range route {
		if !isParameter(s) {
			continue
		}
		before, n := literalsOf(route[:i], path[:i])
		behind, m := literalsOf(route[i+1:], path[i+1+more:])
		if before && behind && (!fits || n+m > literals) {
			id, literals, fits = strings.Join(path[i:i+1+more], "/"), n+m, true
		}
	}
	return id, literals, fits
}

// literalsOf reports whether the segments of a path fit a route, and returns the number of literal segments.
func literalsOf(route, path []string) (fits bool, n int) {
	for i, s := range route {
		switch {
		case isParameter(s):
		case s != path[i]:
			return false, 0
		default:
			n++
		}
	}
	return true, n
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }

// segments returns the segments of a path, decoded if possible.
func segments(escapedPath string) []string {
	all := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	for i, s := range all {
		if decoded, err := url.PathUnescape(s); err == nil {
			all[i] = decoded
		}
	}
	return all
}
