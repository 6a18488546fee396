package apiwire

import (
	"encoding/base64"
	"strings"
)

const plainInPath = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// EscapeID returns an ID for a path: unchanged, or as ~ and its base64url if a gateway could change it.
func EscapeID(id string) string {
	if id == "." || id == ".." || strings.Trim(id, plainInPath) != "" {
		return "~" + base64.RawURLEncoding.EncodeToString([]byte(id))
	}
	return id
}
