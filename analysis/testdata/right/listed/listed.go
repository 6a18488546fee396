// Package listed calls functions without effects, whose names are similar to functions with effects.
package listed

import (
	"hash/fnv"
	"io/ioutil"
	"strings"
	"text/template"

	"github.com/perdure/perdure"
)

func order(ctx *perdure.OrchestrationContext, in string) (string, error) {
	h := fnv.New64()
	_, _ = h.Write([]byte(in))
	t, err := template.New("mail").Parse("to {{.}}")
	if err != nil {
		return "", err
	}
	text, err := ioutil.ReadAll(strings.NewReader(in))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, string(text))
	return b.String(), err
}
