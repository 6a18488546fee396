package originguard

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func accepted(http.ResponseWriter, *http.Request) {}

func TestHosts_ofAnAddress_acceptLoopbackNamesAndTheAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, host string
		want         bool
	}{
		{"127.0.0.1:8090", "127.0.0.1:8090", true},
		{"127.0.0.1:8090", "localhost:8090", true},
		{"127.0.0.1:8090", "LocalHost:8090", true},
		{"127.0.0.1:8090", "[::1]:8090", true},
		{"127.0.0.1:8090", "127.0.0.1", false},
		{"127.0.0.1:8090", "127.0.0.1:8091", false},
		{"127.0.0.1:8090", "127.0.0.1:8090:8090", false},
		{"127.0.0.1:8090", "evil.example:8090", false},
		{"127.0.0.1:8090", "127.0.0.1.evil.example:8090", false},
		{"127.0.0.1:8090", "localhost.:8090", false},
		{"127.0.0.1:8090", "", false},
		{"127.0.0.1:80", "127.0.0.1", true},
		{"127.0.0.1:80", "[::1]", true},
		{"127.0.0.1:80", "evil.example", false},
		{"127.0.0.2:8090", "127.0.0.2:8090", true},
		{"10.0.0.1:8090", "10.0.0.1:8090", true},
		{"0.0.0.0:8090", "0.0.0.0:8090", false},
	} {
		a, err := net.ResolveTCPAddr("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/ui", http.NoBody)
		r.Host = c.host
		w := httptest.NewRecorder()
		ForAddress(a).Handler(http.HandlerFunc(accepted), "fix").ServeHTTP(w, r)
		want := http.StatusOK
		if !c.want {
			want = http.StatusMisdirectedRequest
		}
		if w.Code != want || !c.want && !strings.Contains(w.Body.String(), "forbidden_host") {
			t.Errorf("%s, host %q: status %d, %s", c.listen, c.host, w.Code, w.Body)
		}
	}
}

func TestParseHosts_acceptsEveryPortOfAHostWithoutPort(t *testing.T) {
	t.Parallel()
	h, err := ParseHosts(" api.example.com, 10.0.3.7:8080,, [fd00::1] ")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"api.example.com": true, "API.example.com:8443": true,
		"10.0.3.7:8080": true, "10.0.3.7": false, "10.0.3.7:80": false,
		"[fd00::1]:8080": true, "[fd00::1]": true, "[fd00::2]": false, "evil.example": false, "": false, ":8080": false,
	} {
		if got := h.Accept(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
	if all, err := ParseHosts("*"); err != nil || !all.Accept("any.example") || all.Empty() {
		t.Errorf("*: %v, %v", all, err)
	}
	if none, err := ParseHosts(" , "); err != nil || !none.Empty() || none.Accept("") {
		t.Errorf("without a host: %v, %v", none, err)
	}
	wrong := []string{"https://api.example.com", "a b", "a:b", "a:99999", "[x]", "*.example.com", "a/b", ":80"}
	for _, wrong := range wrong {
		if _, err := ParseHosts(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestAllMethods_rejectsEveryMethodOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	p := Protection()
	if err := p.AddTrustedOrigin("https://shop.example.com"); err != nil {
		t.Fatal(err)
	}
	var method string
	h := AllMethods(p, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { method = r.Method }))
	for _, c := range []struct {
		site, origin string
		want         int
	}{
		{"", "", http.StatusOK},
		{"same-origin", "", http.StatusOK},
		{"none", "", http.StatusOK},
		{"", "http://example.com", http.StatusOK},
		{"cross-site", "https://shop.example.com", http.StatusOK},
		{"cross-site", "", http.StatusForbidden},
		{"same-site", "", http.StatusForbidden},
		{"", "null", http.StatusForbidden},
		{"", "https://evil.example", http.StatusForbidden},
	} {
		for _, sent := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions} {
			r := httptest.NewRequest(sent, "/", http.NoBody) // the host is example.com
			for header, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != c.want || w.Code == http.StatusOK && method != sent {
				t.Errorf("%s %+v: status %d, method %s", sent, c, w.Code, method)
			}
		}
	}
}
