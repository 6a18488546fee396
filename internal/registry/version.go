package registry

import (
	"cmp"
	"strings"
)

// compareVersions compares dotted versions part by part: numbers as numbers, other parts as text. A version that is a
// prefix of another version is lower.
func compareVersions(a, b string) int {
	for a != b {
		if a == "" || b == "" {
			return cmp.Compare(len(a), len(b))
		}
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := compareParts(x, y); c != 0 {
			return c
		}
	}
	return 0
}

func compareParts(x, y string) int {
	if !isNumber(x) || !isNumber(y) {
		return cmp.Compare(x, y)
	}
	x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
