package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/provider"
)

// maxMessageBytes is the maximum size of a message from a client.
const maxMessageBytes = 4 << 20

// Command returns the command mcp.
func Command(env *cli.Env) *cobra.Command {
	var listen string
	var allow []string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve tools for AI assistants",
		Long: `Serve tools for AI assistants over the Model Context Protocol (MCP) until the command is interrupted.

The server uses standard input and output, or streamable HTTP with --listen. It reads the hub with your
credentials. With --allow, it also has tools that change something: the first call shows a preview, and a
second call with the confirmation of the preview makes the change. A confirmation is valid once, for five
minutes, for the same arguments and the same status of the instance.

--allow accepts commands (` + listOf(changingCommands()) + `)
and IDs of operations, such as cancelActivity.

With --listen, clients send the token of ` + authVariable + ` as a bearer token. The address must be a loopback
address. Requests of web pages, and with other host names, are rejected.`,
		Example: `  perdure mcp --hub staging
  perdure mcp --allow cancel,raise
  ` + authVariable + `=$(openssl rand -hex 32) perdure mcp --listen 127.0.0.1:8091`,
		Args: func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			allowed, err := Allowed(allow)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("listen") {
				return serveHTTP(cmd.Context(), env, listen, allowed)
			}
			h, err := env.Open(cmd.Context())
			if err != nil {
				return err
			}
			return serveStdio(cmd.Context(), env, New(cmd.Context(), env, h, allowed))
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().StringVar(&listen, "listen", "", "loopback address for HTTP, such as 127.0.0.1:8091 (default: stdio)")
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "operations that change something, such as cancel,raise")
	cli.CompleteFlag[string](cmd, "listen")
	cli.CompleteFlag(cmd, "allow", changingCommands()...)
	return cmd
}

// listOf returns names for the help, in lines.
func listOf(names []string) string {
	text, column := "", 24
	for i, name := range names {
		if i > 0 {
			text += ", "
			column += 2
		}
		if column+len(name) > 96 {
			text += "\n"
			column = 0
		}
		text += name
		column += len(name)
	}
	return text
}

// serveStdio serves one client on standard input and output, until the client or ctx ends.
func serveStdio(ctx context.Context, env *cli.Env, m *mcp.Server) error {
	err := m.Run(ctx, &mcp.IOTransport{
		Reader: io.NopCloser(env.Stdin), Writer: openWriter{env.Stdout}, MaxLineLength: maxMessageBytes,
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("mcp: %w", err)
	}
	return nil
}

// openWriter is a writer whose Close has no effect.
type openWriter struct{ io.Writer }

// Close implements io.Closer.
func (openWriter) Close() error { return nil }

// loopbackAddress returns an address in the form of net.Listen, which must be a loopback address.
func loopbackAddress(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", &provider.FieldError{
			Field: "--listen", Problem: fmt.Sprintf("must be an address such as 127.0.0.1:8091, is %q", listen),
		}
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", &provider.FieldError{
			Field: "--listen", Problem: fmt.Sprintf("must be a loopback address such as 127.0.0.1:8091, is %q; "+
				"use a tunnel or a proxy with TLS on this machine for other clients", listen),
		}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", &provider.FieldError{
			Field: "--listen", Problem: fmt.Sprintf("must have a port from 0 to 65535, is %q", listen),
		}
	}
	return net.JoinHostPort(host, port), nil
}
