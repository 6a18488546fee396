package httpapi

import (
	"net/http"
	"net/url"
	"strings"
)

// noRoute is what is answered to a path that no call has. It may have come of an id with a slash in it: an HTTP API of
// API Gateway decodes what a caller has encoded. So where an id can stand it is no 404, which a program would take for
// "there is no such instance", and explains how that id is to be sent.
func noRoute(escapedPath string) error {
	id, found := slashed(escapedPath)
	if !found {
		return errNoRoute
	}
	return &problem{
		Status: http.StatusBadRequest, Code: codeNoRoute, Field: fieldPath,
		Detail: errNoRoute.Detail + ": " + shortForm(id),
	}
}

// slashed is what a path has for an id if that has slashes in it: by the call which the rest of the path fits best.
func slashed(escapedPath string) (id string, found bool) {
	path := segments(escapedPath)
	best := 0
	for _, r := range routes() {
		if spread, literals, fits := spreads(segments(r.path), path); fits && literals > best {
			id, best = spread, literals
		}
	}
	return id, best > 0
}

// spreads reports whether a path is a route's but for an id that is spread over several segments: which, and how many
// of the others are the route's own.
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

// literalsOf reports whether segments fit those of a route, and how many of these are no parameters.
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

// segments are those of a path, decoded as far as they can be.
func segments(escapedPath string) []string {
	all := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	for i, s := range all {
		if decoded, err := url.PathUnescape(s); err == nil {
			all[i] = decoded
		}
	}
	return all
}
