// Package ui serves the page that shows the instances of a task hub in a browser: one HTML document with its styles and code in it, which asks
// nothing but the HTTP API beside it. It is served by `perdure ui`, and by the function of the API at /ui where PERDURE_UI is true.
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

// Path is where Handler serves the page. The API is expected beside it, at /v1.
const Path = "/ui"

//go:embed page
var files embed.FS

// document is the page, and what its answers say about it.
type document struct {
	body           []byte
	policy, etag   string
	script, styles string
}

// joined is the document, once somebody serves it. A variable that is filled at the start of the program would cost each function that, and the room of
// the files: the linker leaves them out of programs that do not call Handler.
var joined struct {
	once sync.Once
	page *document
}

// page is the document. The files are part of the program, so that one which is missing is a mistake of the build.
func page() *document {
	joined.once.Do(func() { joined.page = mustRead(files) })
	return joined.page
}

// Handler serves the page at Path, for GET and HEAD. It may be used by any number of goroutines.
func Handler() http.Handler {
	page := page()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", page.policy)
		h.Set("Cache-Control", "no-cache") // the ETag makes a second visit cheap
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

// mustRead joins the files to one document. The policy allows the browser exactly this style and this code, and no other host.
func mustRead(from fs.FS) *document {
	names, err := fs.Glob(from, "page/*.js")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("ui: the page has no code: %v", err))
	}
	code := []string{"'use strict';"}
	for _, name := range names { // in the order of their names, which begin with numbers
		code = append(code, read(from, name))
	}

	d := &document{styles: read(from, "page/page.css")}
	d.script = "(() => {\n" + strings.Join(code, "\n") + "})();"
	d.body = []byte(strings.NewReplacer("/*styles*/", d.styles, "/*script*/", d.script).Replace(read(from, "page/page.html")))
	d.policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		hashOf(d.script), hashOf(d.styles))
	sum := sha256.Sum256(d.body)
	d.etag = `"` + hex.EncodeToString(sum[:8]) + `"`
	return d
}

func read(from fs.FS, name string) string {
	b, err := fs.ReadFile(from, name)
	if err != nil {
		panic(fmt.Sprintf("ui: the page is incomplete: %v", err))
	}
	return string(b)
}

// hashOf names a text as a Content-Security-Policy does.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
