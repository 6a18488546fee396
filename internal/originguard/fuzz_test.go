package originguard

import (
	"strings"
	"testing"
)

// FuzzHosts checks that only the hosts of the list are accepted, in any case and with any port unless the list has one.
func FuzzHosts(f *testing.F) {
	for _, s := range [][2]string{
		{"api.example.com,10.0.3.7:8080", "API.example.com:443"},
		{"[::1]:80", "[::1]:80"},
		{"[::1]", "[::1]:x"},
		{"*", ""},
		{"a:", "a:"},
		{"localhost", "localhost.evil.example"},
		{"a", "a:80:80"},
		{"[[::1]]", "[[::1]]"},
		{"a b", "a"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, list, host string) {
		h, err := ParseHosts(list)
		if err != nil {
			if !h.Empty() || !strings.Contains(err.Error(), "is not a host") {
				t.Errorf("%q: %+v, %v", list, h, err)
			}
			return
		}
		if !h.Accept(host) || h.all {
			return
		}
		listed := false
		for name := range strings.SplitSeq(strings.ToLower(list), ",") {
			name = strings.TrimSpace(name)
			port, ofName := strings.CutPrefix(strings.ToLower(host), name)
			number, hasPort := strings.CutPrefix(port, ":")
			isPort := hasPort && number != "" && strings.Trim(number, "0123456789") == ""
			listed = listed || name != "" && ofName && (port == "" || isPort)
		}
		if !listed {
			t.Errorf("host %q is not in %q", host, list)
		}
	})
}
