package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/perdure/perdure"
)

// NoInput is the default value of an input.
const NoInput = "null"

// ReadInput returns a JSON value, the content of @FILE, or stdin for "-". It reads one byte more than any hub allows,
// so that the client can reject an input that is too large.
func (env *Env) ReadInput(from string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(from, "@")
	source := env.Stdin
	switch {
	case isFile:
		f, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, fmt.Errorf("read JSON: %w", err)
		}
		defer f.Close() //nolint:errcheck // nothing was written
		source = f
	case from != "-":
		return json.RawMessage(from), nil
	}
	doc, err := io.ReadAll(io.LimitReader(source, perdure.MaxLargePayloadBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return doc, nil
}
