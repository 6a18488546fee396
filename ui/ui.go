// Package ui serves the web UI, which shows the instances of a task hub in a browser. The web UI is one HTML document
// that contains its styles and code. It sends requests only to the HTTP API of the same origin. The command perdure ui
// serves the web UI, and the API function serves it at /ui if PERDURE_UI is true.
package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Path is the URL path at which Handler serves the web UI. The web UI expects the HTTP API at /v1 of the same origin.
const Path = "/ui"

//go:embed page
var files embed.FS

// document is the web UI with the values of its response headers.
type document struct {
	body           []byte
	policy, etag   string
	script, styles string
}

// joined contains the document after its first use. It has no initializer, so that programs that do not call Handler do
// not build the document and do not link the files.
var joined struct {
	once sync.Once
	page *document
}

// page returns the document. It panics if a file is missing, because the files are embedded at build time.
func page() *document {
	joined.once.Do(func() { joined.page = mustRead(files) })
	return joined.page
}

// Handler returns a handler that serves the web UI at Path for GET and HEAD requests. It is safe for concurrent use.
// Other paths return status 404, and other methods return status 405.
func Handler() http.Handler {
	page := page()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", page.policy)
		h.Set("Cache-Control", "no-cache") // a browser revalidates with the ETag
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("ETag", page.etag)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page.body))
	})
	return mux
}

// mustRead joins the files to one document. Its Content-Security-Policy allows only the styles and code of the
// document, and requests only to the same origin.
func mustRead(from fs.FS) *document {
	names, err := fs.Glob(from, "page/*.js")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("ui: no script files: %v", err))
	}
	code := []string{"'use strict';"}
	for _, name := range names { // sorted by name: the names begin with numbers
		code = append(code, read(from, name))
	}

	d := &document{styles: read(from, "page/page.css")}
	d.script = "(() => {\n" + strings.Join(code, "\n") + "})();"
	parts := strings.NewReplacer("/*styles*/", d.styles, "/*script*/", d.script)
	d.body = []byte(parts.Replace(read(from, "page/page.html")))
	d.policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hashOf(d.script), hashOf(d.styles))
	sum := sha256.Sum256(d.body)
	d.etag = `"` + hex.EncodeToString(sum[:8]) + `"`
	return d
}

func read(from fs.FS, name string) string {
	b, err := fs.ReadFile(from, name)
	if err != nil {
		panic(fmt.Sprintf("ui: read an embedded file: %v", err))
	}
	return string(b)
}

// hashOf returns the hash source of a text for a Content-Security-Policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
