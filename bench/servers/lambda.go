package servers

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

//go:embed lambda.mjs
var runner []byte

// Lambda is AWS's local test runner of Lambda durable functions, in Node.js. It reads requests and writes responses as
// lines of JSON.
type Lambda struct {
	*Process

	In  io.Writer
	Out io.Reader
}

// StartLambda starts the runner. node is the directory of the npm packages.
func StartLambda(_ context.Context, node string) (*Lambda, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "lambda.mjs")
	if err := os.WriteFile(script, runner, 0o600); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	p, err := start(dir, options{stderr: io.Discard}, "node", script, node)
	if err != nil {
		return nil, err
	}
	return &Lambda{Process: p, In: p.stdin, Out: p.stdout}, nil
}
