package apiwire

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// methods are the methods of the API.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete}

// Impersonates returns the segment of a decoded path that makes IAM permit the call to callers with permissions for
// other calls, or "". In the resource */GET/v1/* of a policy, the first * also matches POST/v1/entities.
func Impersonates(path string) string {
	segments := strings.Split(path, "/")
	for i := 0; i+2 < len(segments); i++ {
		if slices.Contains(methods, segments[i]) && segments[i+1] == "v1" {
			return segments[i]
		}
	}
	return ""
}

const plainInPath = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// EscapeID returns an ID for a path: unchanged, or as ~ and its base64url if a gateway could change it, or could
// mistake it for the method of another call.
func EscapeID(id string) string {
	if id == "." || id == ".." || slices.Contains(methods, id) || strings.Trim(id, plainInPath) != "" {
		return "~" + base64.RawURLEncoding.EncodeToString([]byte(id))
	}
	return id
}
