package ui

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestHandler_contentSecurityPolicy_allowsOnlyTheDocument(t *testing.T) {
	t.Parallel()
	w := get(t, http.MethodGet, "/ui?status=Failed")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("status %d, %s", w.Code, w.Header())
	}
	for _, name := range []string{"Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"} {
		if got := w.Header().Get(name); got != "same-origin" {
			t.Errorf("%s is %q", name, got)
		}
	}
	policy := w.Header().Get("Content-Security-Policy")
	for tag, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		found := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(w.Body.String(), -1)
		if len(found) != 1 {
			t.Fatalf("%d elements %s", len(found), tag)
		}
		if want := directive + " '" + hashOf(found[0][1]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("policy %q has no %s", policy, want)
		}
	}
	for _, loose := range []string{"unsafe", "*", "http:", "https:"} {
		if strings.Contains(policy, loose) {
			t.Errorf("policy %q has %s", policy, loose)
		}
	}
}

// The Content-Security-Policy blocks other hosts, event handler attributes and style attributes.
func TestDocument_hasNoExternalReferences(t *testing.T) {
	t.Parallel()
	body := get(t, http.MethodGet, Path).Body.String()
	for _, pattern := range []string{
		`(?i)\bsrc=`, `(?i)@import`, `\burl\(`, ` on[a-z]+="`, `\bstyle="`, `innerHTML`, `insertAdjacentHTML`,
		`document\.write`,
		`\beval\(`, `/\*script\*/`, `/\*styles\*/`,
	} {
		if found := regexp.MustCompile(pattern).FindString(body); found != "" {
			t.Errorf("the document contains %q", found)
		}
	}
	for _, address := range regexp.MustCompile(`https?://[^\s'"]+`).FindAllString(body, -1) {
		if address != "http://www.w3.org/2000/svg" {
			t.Errorf("the document contains the URL %s", address)
		}
	}
}

func TestHandler_methodsAndCaching(t *testing.T) {
	t.Parallel()
	tag := get(t, http.MethodGet, Path).Header().Get("ETag")
	if w := get(t, http.MethodGet, Path, "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("revalidation: status %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := get(t, http.MethodHead, Path); w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("HEAD: status %d, %d bytes", w.Code, w.Body.Len())
	}
	for target, want := range map[string]int{"/ui/x": http.StatusNotFound, "/": http.StatusNotFound} {
		if w := get(t, http.MethodGet, target); w.Code != want {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
	if w := get(t, http.MethodPost, Path); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", w.Code)
	}
}

func TestMustRead_missingFile_panics(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]fs.FS{
		"empty": fstest.MapFS{}, "no styles": fstest.MapFS{"page/10.js": {}},
		"no document": fstest.MapFS{"page/10.js": {}, "page/10.css": {}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			mustRead(from)
		}()
	}
}
