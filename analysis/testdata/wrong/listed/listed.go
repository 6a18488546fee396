// Package listed calls functions of the standard library with known effects.
package listed

import (
	"crypto/ed25519"
	"crypto/tls"
	"hash/maphash"
	"html/template"
	"mime"

	"github.com/perdure/perdure"
)

func order(ctx *perdure.OrchestrationContext, in string) (string, error) {
	done := make(chan int)
	close(done) // want `order closes a channel.*\[channel\]`
	var h maphash.Hash
	_, _ = h.WriteString(in)
	bucket := h.Sum64() % 3                                  // want `calls maphash\.Hash\.Sum64.*\[random\]`
	if _, err := tls.LoadX509KeyPair("a", "b"); err != nil { // want `calls tls\.LoadX509KeyPair.*\[io\]`
		return "", err
	}
	if _, err := template.ParseFiles("a.html"); err != nil { // want `calls template\.ParseFiles.*\[io\]`
		return "", err
	}
	public, _, err := ed25519.GenerateKey(nil)                      // want `calls ed25519\.GenerateKey.*\[random\]`
	return string(public[bucket]) + mime.TypeByExtension(".x"), err // want `calls mime\.TypeByExtension.*\[environment\]`
}
